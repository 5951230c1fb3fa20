"""Writes a transcript as plain text, subtitles (SRT, WebVTT) or JSON."""

import json
from collections.abc import Callable, Mapping, Sequence

import attrs

from gateway_speech.child.segments import Segment

# Instead of words that the recording does not contain.
NO_SPEECH = "[no speech found]"
_LINE_CHARS = 42
# A cue that ends as it begins is not valid.
_LEAST_S = 0.01


@attrs.frozen
class Transcript:
    """The sentences of a recording, and its length."""

    segments: Sequence[Segment]
    seconds: float

    @property
    def text(self) -> str:
        """The words without times."""
        return " ".join(one.text for one in self.segments)


def _plain(transcript: Transcript) -> str:
    return f"{transcript.text or NO_SPEECH}\n"


def _json(transcript: Transcript) -> str:
    found = {
        "language": "en",
        "seconds": round(transcript.seconds, 2),
        "speech": bool(transcript.segments),
        "text": transcript.text,
        "segments": [attrs.asdict(one) for one in transcript.segments],
    }
    return f"{json.dumps(found, ensure_ascii=False, indent=1)}\n"


def _srt(transcript: Transcript) -> str:
    cues = [
        f"{number}\n{_clock(one.start, ',')} --> {_clock(_end(one), ',')}\n{_lines(one.text)}\n"
        for number, one in enumerate(_cues(transcript), 1)
    ]
    return "\n".join(cues)


def _vtt(transcript: Transcript) -> str:
    note = "" if transcript.segments else f"\nNOTE {NO_SPEECH}\n"
    cues = [
        f"\n{_clock(one.start, '.')} --> {_clock(_end(one), '.')}\n{_lines(_escaped(one.text))}\n"
        for one in (_cues(transcript) if transcript.segments else ())
    ]
    return f"WEBVTT\n{note}{''.join(cues)}"


def _cues(transcript: Transcript) -> Sequence[Segment]:
    """Return the cues of subtitles. Without one, players call an SRT broken."""
    return transcript.segments or [Segment(0.0, transcript.seconds, NO_SPEECH)]


def _end(segment: Segment) -> float:
    return max(segment.end, segment.start + _LEAST_S)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _lines(text: str) -> str:
    """Break a cue into lines of about the same length; arrows would be read as times."""
    words = text.replace("-->", "->").split()
    count = -(-len(text) // _LINE_CHARS)
    lines, line = [], ""
    for word in words:
        if line and len(line) + len(word) >= len(text) / count:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])


def _clock(seconds: float, point: str) -> str:
    whole, thousandths = divmod(round(seconds * 1_000), 1_000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{point}{thousandths:03}"


WRITERS: Mapping[str, Callable[[Transcript], str]] = {
    "txt": _plain,
    "srt": _srt,
    "vtt": _vtt,
    "json": _json,
}
