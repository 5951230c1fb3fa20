"""Providers' sounds are decoded before a task completes."""

import json

import pytest

from gateway.sandbox.errors import SandboxRefusal
from gateway_media import SOUND, samples
from gateway_media.child.sound import check_sound
from tests.plugins.gateway_media.made_sounds import MP3_FRAME, chunk, encoded, opus, wav, wav_form

SECOND = wav(wav_form(), chunk(b"data", bytes(8000)))


def checked(data: bytes, wanted: str = "") -> tuple[dict, bytes]:
    facts, repaired = check_sound(wanted, "audio/wav", data)
    return json.loads(facts), repaired


@pytest.mark.parametrize(
    ("data", "media_type", "wanted"),
    [
        (samples.WAV, "audio/wav", "wav"),
        (samples.FLAC, "audio/flac", "flac"),
        (samples.MP3, "audio/mpeg", "mp3"),
        (b"ID3\4\0\0\0\0\0\0" + samples.MP3, "audio/mpeg", ""),
        (samples.OGG, "audio/ogg", "opus"),
        (encoded(0.5, "OGG", "VORBIS"), "audio/ogg", "ogg"),
    ],
)
def test_a_sound_is_served_as_its_content_also_if_it_is_silent(data, media_type, wanted):
    facts, repaired = checked(data, wanted)
    assert facts == {"media_type": media_type, "seconds": pytest.approx(0.5, abs=0.08)}
    assert facts["media_type"] in SOUND.media_types
    assert not repaired


def test_a_flac_is_served_without_tags_before_it():
    facts, repaired = checked(b"ID3\4\0\0\0\0\0\0" + samples.FLAC)
    assert (facts["media_type"], repaired) == ("audio/flac", samples.FLAC)


@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_streamed_wav_gets_a_right_header(size):
    streamed = wav(wav_form(), chunk(b"data", bytes(8000), size=size), size=0xFFFFFFFF)
    assert checked(streamed) == ({"media_type": "audio/wav", "seconds": 1.0}, SECOND)


@pytest.mark.parametrize(
    ("data", "wanted", "reason"),
    [
        (b"", "", "is no WAV"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "", "is no WAV"),
        (b'{"error": "no credit"}', "", "is no WAV"),
        (SECOND, "mp3", "is audio/wav, and mp3 was ordered"),
        (SECOND[:-1], "", "cut off"),
        (wav(wav_form(), chunk(b"data", b"")), "", "is empty"),
        (encoded(2, "FLAC", "PCM_16")[:-900], "", "cannot be decoded"),
        (opus(5)[:60], "", "cannot be decoded"),
        (MP3_FRAME[:20], "", "cannot be decoded"),
    ],
)
def test_a_result_without_a_whole_sound_is_refused(data, wanted, reason):
    with pytest.raises(SandboxRefusal, match=reason):
        checked(data, wanted)
