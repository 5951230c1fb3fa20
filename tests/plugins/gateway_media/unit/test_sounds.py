"""Buyers' sounds are measured by their samples, and the provider gets the measured ones."""

import json
import struct

import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media import SOUND_FILE
from gateway_media.child.bounds import UnfitError
from gateway_media.child.decoder import decode
from gateway_media.child.sound import read_sound
from tests.plugins.gateway_media.made_sounds import (
    MOST_BYTES,
    MP3_FRAME,
    MP3_FRAME_S,
    OPUS_HEAD,
    OPUS_PACKET,
    OPUS_TAGS,
    chunk,
    encoded,
    opus,
    page,
    restamped,
    wav,
    wav_form,
)

SAMPLES = bytes(range(256)) * 32
SECOND = wav(wav_form(), chunk(b"data", SAMPLES[:8000]))
FLAC = encoded(1, "FLAC", "PCM_16")
VORBIS = encoded(2, "OGG", "VORBIS")


def sold(ending: str, data: bytes) -> tuple[float, bytes]:
    """Return the measured seconds, and the file that the provider gets."""
    report, plain = read_sound(ending, data, MOST_BYTES)
    return json.loads(report)["seconds"], plain or data


def refused(ending: str, data: bytes) -> str:
    with pytest.raises(SandboxRefusal) as error:
        read_sound(ending, data, MOST_BYTES)
    return str(error.value)


@pytest.mark.parametrize(("ending", "data"), SOUND_FILE.samples.items())
def test_each_sample_is_half_a_second_and_stays_as_it_is(ending, data):
    seconds, plain = sold(ending, data)
    assert seconds == pytest.approx(0.5, abs=0.04)
    assert plain == data


@pytest.mark.parametrize(
    ("ending", "form", "subtype"),
    [
        (".wav", "WAV", "PCM_16"),
        (".wav", "WAVEX", "PCM_24"),
        (".wav", "WAV", "FLOAT"),
        (".flac", "FLAC", "PCM_24"),
        (".mp3", "MP3", "MPEG_LAYER_III"),
        (".ogg", "OGG", "VORBIS"),
        (".opus", "OGG", "OPUS"),
    ],
)
def test_an_encoders_file_has_the_length_of_its_samples(ending, form, subtype):
    seconds, plain = sold(ending, encoded(1.5, form, subtype))
    # An MP3 begins and ends with a part of silence.
    assert seconds == pytest.approx(1.5, abs=0.25 if ending == ".mp3" else 1e-6)
    assert sold(ending, plain) == (seconds, plain)


@pytest.mark.parametrize("ending", [".wav", ".flac", ".mp3", ".ogg"])
@pytest.mark.parametrize("data", [b"", b"RIFF", b"OggS", b"fLaC", b"\xff\xfb", b"%PDF-1.7\n" * 99])
def test_a_file_of_another_kind_is_refused(ending, data):
    assert refused(ending, data).startswith("The sound ")


@pytest.mark.parametrize(
    ("ending", "data"), [(".wav", SECOND), (".flac", FLAC), (".ogg", VORBIS), (".ogg", opus(50))]
)
@pytest.mark.parametrize("share", [0.999, 0.5])
def test_a_file_that_is_cut_off_is_refused(ending, data, share):
    refused(ending, data[: int(len(data) * share)])


# -- WAV


@pytest.mark.parametrize("rate", [48_000, 96_000, 192_000])
def test_a_higher_rate_makes_no_wav_cheaper(rate):
    data = wav(wav_form(rate), chunk(b"data", bytes(96_000)))
    assert sold(".wav", data)[0] == 2.0


@pytest.mark.parametrize(
    "data",
    [
        wav(wav_form(), chunk(b"data", SAMPLES[:8000]), size=4),
        *(
            wav(wav_form(), chunk(b"data", SAMPLES[:8000], size=size), size=0xFFFFFFFF)
            # Of a program that cannot seek.
            for size in (0, 0x7FFFF000, 0x7FFFFFFF, 0xFFFFFFDB, 0xFFFFFFFF)
        ),
        wav(
            chunk(b"LIST", b"more"),
            wav_form(),
            chunk(b"data", SAMPLES[:8000]),
            chunk(b"id3 ", b"x"),
        ),
        SECOND + b"trailing",
        # Bytes a second, and the size of a frame.
        SECOND[:28] + bytes(6) + SECOND[34:],
    ],
)
def test_the_provider_gets_one_block_of_samples_under_a_right_header(data):
    assert sold(".wav", data) == (1.0, SECOND)


@pytest.mark.parametrize(
    "data",
    [
        wav(wav_form(), chunk(b"data", SAMPLES), chunk(b"data", SAMPLES)),
        wav(wav_form(), wav_form(96_000), chunk(b"data", SAMPLES)),
        wav(chunk(b"data", SAMPLES), wav_form()),
        wav(wav_form(), chunk(b"data", SAMPLES, size=len(SAMPLES) + 1)),
        wav(wav_form(), chunk(b"data", b"")),
        wav(wav_form(rate=0), chunk(b"data", SAMPLES)),
        wav(wav_form(rate=192_001), chunk(b"data", SAMPLES)),
        wav(wav_form(channels=0), chunk(b"data", SAMPLES)),
        wav(wav_form(channels=3), chunk(b"data", SAMPLES)),
        wav(wav_form(bits=0), chunk(b"data", SAMPLES)),
        # A compressed form.
        wav(wav_form(tag=0x55), chunk(b"data", SAMPLES)),
        b"RF64" + SECOND[4:],
    ],
)
def test_a_wav_that_readers_may_understand_differently_is_refused(data):
    refused(".wav", data)


# -- FLAC


def flac_promising(samples: int, data: bytes = FLAC) -> bytes:
    form = int.from_bytes(data[18:26]) >> 36 << 36
    return data[:18] + (form | samples).to_bytes(8) + data[26:]


@pytest.mark.parametrize("promised", [0, 10, 7999])
def test_all_samples_of_a_flac_are_sold_also_those_that_its_header_hides(promised):
    assert sold(".flac", flac_promising(promised)) == (1.0, sold(".flac", FLAC)[1])


@pytest.mark.parametrize("promised", [8001, (1 << 36) - 1])
def test_a_flac_that_promises_more_samples_is_refused(promised):
    assert "cut off" in refused(".flac", flac_promising(promised))


def test_tags_before_a_flac_do_not_reach_the_provider():
    assert sold(".flac", ID3 + FLAC) == sold(".flac", FLAC)


def test_a_flac_of_a_high_rate_is_not_decoded_for_longer_than_it_is_sold():
    data = encoded(1.5, "FLAC", "PCM_16", rate=96_000)
    assert decode(data, most_seconds=3.1).seconds == 1.5
    with pytest.raises(UnfitError, match="more than 2 seconds"):
        decode(data, most_seconds=2)


def test_a_flac_with_other_bytes_after_its_frames_is_refused():
    assert refused(".flac", FLAC + FLAC) == "The sound cannot be decoded."


# -- MP3


ID3 = b"ID3\4\0\0" + bytes((0, 0, 1, 0)) + MP3_FRAME.ljust(128, b"\0")
_ITEM = struct.pack("<II", 72, 0) + b"note\0" + MP3_FRAME
_SIZES = struct.pack("<4I8x", 2000, len(_ITEM) + 32, 1, 0xA0000000)
APE = b"APETAGEX" + _SIZES + _ITEM + b"APETAGEX" + _SIZES


def described(count: int, mark: bytes) -> bytes:
    """Return a first frame that promises a number of frames."""
    at = 4 + 9 if mark == b"Xing" else 4 + 32
    more = struct.pack(">II", 1, count) if mark == b"Xing" else bytes(10) + struct.pack(">I", count)
    return (MP3_FRAME[:at] + mark + more).ljust(len(MP3_FRAME), b"\0")


@pytest.mark.parametrize("mark", [b"Xing", b"VBRI"])
def test_all_frames_of_an_mp3_are_sold_and_the_one_that_describes_them_is_left_out(mark):
    data = described(1, mark) + MP3_FRAME * 20
    assert sold(".mp3", data) == (pytest.approx(20 * MP3_FRAME_S), MP3_FRAME * 20)
    # It may count itself, or frames that were cut off.
    assert sold(".mp3", described(21, mark) + MP3_FRAME * 20) == sold(".mp3", data)


def test_tags_around_an_mp3_do_not_reach_the_provider():
    for tag in (ID3, APE, ID3 + APE, APE + ID3 + bytes(99)):
        data = tag + MP3_FRAME * 20 + b"TAG" + MP3_FRAME * 50
        assert sold(".mp3", data) == (pytest.approx(20 * MP3_FRAME_S), MP3_FRAME * 20)


def test_a_last_frame_of_an_mp3_that_is_cut_off_is_left_out():
    data = (MP3_FRAME * 20)[:-1]
    assert sold(".mp3", data) == (pytest.approx(19 * MP3_FRAME_S), MP3_FRAME * 19)


@pytest.mark.parametrize(
    "data",
    [
        MP3_FRAME * 20 + b"other data" + MP3_FRAME * 20,
        # 11.025 kHz after 8 kHz, and two channels after one.
        MP3_FRAME * 20 + b"\xff\xe3\x10\xc4" + bytes(48),
        MP3_FRAME * 20 + b"\xff\xe3\x18\x04" + bytes(68),
        # Frames of any length.
        b"\xff\xe3\x08\xc4" + bytes(68),
        described(0, b"Xing"),
        MP3_FRAME,
    ],
)
def test_an_mp3_of_unclear_length_is_refused(data):
    try:
        seconds, _ = sold(".mp3", data)
    except SandboxRefusal:
        return
    # One frame is shorter than the limit, which the gateway compares.
    assert data == MP3_FRAME
    assert seconds < SOUND_FILE.limits[0].least


# -- Ogg

MIDDLE = opus(500)[opus(500).rindex(b"OggS") :]


def test_an_opus_file_has_the_length_of_its_packets_and_may_end_within_the_last():
    assert sold(".opus", opus(50))[0] == 1.0
    assert sold(".opus", opus(50, granule=48_000 - 900))[0] == pytest.approx(1 - 900 / 48_000)
    assert sold(".opus", opus(50, granule=20_000))[0] == 1.0
    late = OPUS_HEAD[:10] + b"\xff\xff" + OPUS_HEAD[12:]
    assert sold(".opus", opus(50, head=late))[0] == pytest.approx(0.92)


def test_an_opus_file_leaves_out_a_tenth_of_a_second_at_most():
    # Each packet has six frames of 20 ms.
    packets = [bytes((1 << 3 | 3, 6))] * 10
    head = OPUS_HEAD[:10] + (3840).to_bytes(2, "little") + OPUS_HEAD[12:]
    begin = page([head], flags=2) + page([OPUS_TAGS], number=1)
    data = begin + page(packets, flags=4, granule=57_600 - 5000, number=2)
    assert sold(".opus", data)[0] == pytest.approx(1.1)


@pytest.mark.parametrize(
    "data",
    [
        # A second stream behind the first, and beside it.
        opus(50) + opus(500, serial=2),
        opus(50) + opus(500),
        page([OPUS_HEAD], flags=2) + page([OPUS_HEAD], flags=2, serial=2) + opus(50)[47:],
        opus(50) + page([OPUS_PACKET] * 50, granule=96_000, number=3),
        opus(50) + b"trailing",
        opus(50)[:-1] + b"\1",
        # Stamps of another length.
        opus(200, granule=480),
        opus(50, granule=10**9),
        opus(50, granule=-1),
        # A page in the middle with a late stamp.
        restamped(opus(500)[: -len(MIDDLE)], 10**12) + MIDDLE,
        opus(50, head=OPUS_HEAD[:9] + b"\6" + OPUS_HEAD[10:18] + b"\1"),
        page([OPUS_HEAD], flags=2) + page([OPUS_TAGS], number=1, flags=4),
        page([OPUS_HEAD], flags=2) + page([OPUS_TAGS, b""], number=1, flags=4),
        page([b"\1video"], flags=2) + page([b"x"], number=1),
    ],
)
def test_an_ogg_with_more_than_one_sound_or_other_stamps_is_refused(data):
    refused(".ogg", data)


def test_a_vorbis_file_that_promises_less_is_refused_or_sold_whole():
    assert sold(".ogg", VORBIS)[0] == 2.0
    assert sold(".ogg", restamped(VORBIS, 9000))[0] >= 2.0
    assert sold(".ogg", restamped(VORBIS, 15_900))[0] == 15_900 / 8000
    assert "time stamps" in refused(".ogg", restamped(VORBIS, 1000))
    assert "time stamps" in refused(".ogg", restamped(VORBIS, 10**9))


def test_a_file_that_is_larger_than_the_endpoint_allows_is_refused():
    with pytest.raises(SandboxRefusal, match="8,044 bytes, once it is read; 8,000 are allowed"):
        read_sound(".wav", SECOND, "8000")


def test_an_hour_of_silence_is_too_long():
    hour = encoded(3600, "FLAC", "PCM_S8", silent=True, rate=4000)
    assert len(hour) < 100_000
    assert refused(".flac", hour) == "The sound has more than 1,800 seconds."
    assert "1,800 seconds" in refused(".wav", wav(wav_form(4000), chunk(b"data", bytes(7_400_000))))
