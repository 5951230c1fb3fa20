"""Transcripts are valid in each format, and their times are in order and within the sound."""

import json
import re

import pytest

from gateway_speech.child.segments import Segment, in_order, read
from gateway_speech.child.transcripts import NO_SPEECH, WRITERS, Transcript
from gateway_speech.child.vocabulary import Vocabulary

TWO = Transcript(
    [
        Segment(0.0, 2.5, "Fish & <chips> --> twice."),
        Segment(3_661.25, 3_663.0, "The harbour was quiet, and the first boats came home at six."),
    ],
    3_700.0,
)
NOTHING = Transcript([], 12.345)
CLOCK = r"(\d\d):([0-5]\d):([0-5]\d){}(\d{{3}})"


def seconds(parts):
    hours, minutes, whole, thousandths = map(int, parts)
    return hours * 3600 + minutes * 60 + whole + thousandths / 1000


def cues(text, point):
    """Parse blocks of subtitles: times, and lines without an empty one among them."""
    found = []
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        times = re.fullmatch(f"{CLOCK} --> {CLOCK}".format(point, point), lines[0])
        assert times, block
        assert all(line and "-->" not in line for line in lines[1:])
        found.append((seconds(times.groups()[:4]), seconds(times.groups()[4:]), lines[1:]))
    assert all(start < end for start, end, _ in found)
    return found


def srt(text):
    numbers = [block.split("\n", 1) for block in text.strip("\n").split("\n\n")]
    assert [int(number) for number, _ in numbers] == list(range(1, len(numbers) + 1))
    return cues("\n\n".join(rest for _, rest in numbers), ",")


def test_srt_is_numbered_and_has_times_with_a_comma():
    first, second = srt(WRITERS["srt"](TWO))
    assert first == (0.0, 2.5, ["Fish & <chips> -> twice."])
    assert second[:2] == (3_661.25, 3_663.0)
    assert len(second[2]) == 2
    assert max(map(len, second[2])) <= 42


def test_vtt_begins_with_its_name_and_is_escaped():
    head, _, rest = WRITERS["vtt"](TWO).partition("\n\n")
    assert head == "WEBVTT"
    assert cues(rest, r"\.")[0] == (0.0, 2.5, ["Fish &amp; &lt;chips&gt; --&gt; twice."])


def test_json_and_plain_text():
    found = json.loads(WRITERS["json"](TWO))
    assert (found["speech"], found["seconds"], found["language"]) == (True, 3_700.0, "en")
    assert found["segments"][0] == {"start": 0.0, "end": 2.5, "text": "Fish & <chips> --> twice."}
    assert WRITERS["txt"](TWO).startswith("Fish & <chips> --> twice. The harbour")


def test_a_recording_without_speech_says_so_in_each_format():
    assert WRITERS["txt"](NOTHING) == f"{NO_SPEECH}\n"
    assert srt(WRITERS["srt"](NOTHING)) == [(0.0, 12.345, [NO_SPEECH])]
    assert WRITERS["vtt"](NOTHING) == f"WEBVTT\n\nNOTE {NO_SPEECH}\n"
    found = json.loads(WRITERS["json"](NOTHING))
    assert (found["speech"], found["text"], found["segments"]) == (False, "", [])


def test_times_are_put_in_order_and_within_the_sound():
    odd = [Segment(0.0, 5.0, "a"), Segment(4.0, 3.0, "b"), Segment(9.0, 40.0, "c")]
    ordered = [(one.start, one.end) for one in in_order(odd, 10.0)]
    assert ordered == [(0.0, 5.0), (5.0, 5.0), (9.0, 10.0)]


LINES = ["h", "i", "Ġyou", "<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>"]
VOCABULARY = Vocabulary.parse("\n".join([*LINES, "<|notimestamps|>"]))
AT_0, AT_2, AT_20 = (8 + round(one / 0.02) for one in (0, 2, 20))


def test_tokens_become_words():
    assert VOCABULARY.text([0, 1, 2, AT_2]) == "hi you"
    assert VOCABULARY.seconds(AT_2) == pytest.approx(2.0)
    assert VOCABULARY.seconds(2) is None
    assert VOCABULARY.prompt(names_language=False) == [4]
    assert VOCABULARY.prompt(names_language=True) == [4, 5, 6]


def test_a_sentence_that_the_window_cuts_off_is_read_again():
    window = read([AT_0, 0, 1, AT_20, AT_20, 2], VOCABULARY, 30.0)
    assert ([one.text for one in window.segments], window.step_s) == (["hi"], 20.0)


def test_the_last_window_keeps_its_last_sentence():
    window = read([AT_0, 0, 1, AT_2, AT_2, 2], VOCABULARY, 5.0)
    found = [(one.start, one.end, one.text) for one in window.segments]
    assert found == [(0.0, 2.0, "hi"), (2.0, 5.0, "you")]
    assert window.step_s == 30.0


def test_what_follows_the_last_sentence_of_a_window_is_read_again():
    assert read([AT_0, 0, 1, AT_2], VOCABULARY, 5.0).step_s == 2.0


def test_each_window_moves_on():
    for tokens in ([], [AT_0], [AT_0, 0, AT_0], [AT_0, 0, AT_0, AT_0, 2]):
        assert read(tokens, VOCABULARY, 30.0).step_s >= 1.0
