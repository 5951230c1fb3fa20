"""The provider passes the gateway's tests, and the sandbox's functions refuse hostile files."""

import json
import struct
from typing import ClassVar

import gateway_melody
import pytest
from gateway_melody.child import check_midi, measure, transcribe
from gateway_melody.sample import SCALE, recording

from gateway.sandbox.errors import SandboxRefusal
from gateway.testing import ProviderContract

MIDI = transcribe(SCALE)


def track(data: bytes) -> bytes:
    """Return a MIDI file of one track."""
    head = struct.pack(">4sIHHH", b"MThd", 6, 0, 1, 480)
    return head + b"MTrk" + struct.pack(">I", len(data)) + data


class TestMelody(ProviderContract):
    plugin = gateway_melody
    api = None
    values: ClassVar = {"melody_price": "0.001"}


def test_a_scale_becomes_its_notes():
    assert measure(".wav", SCALE, "") == (b'{"seconds": 1.0}', b"")
    facts, _ = check_midi("", "audio/midi", MIDI)
    assert facts == b'{"media_type": "audio/midi", "seconds": 1.0}'
    # B3 and B4: 250 and 500 Hz.
    assert [MIDI[at + 1] for at in range(len(MIDI)) if MIDI[at] == 0x90] == [59, 71]


def lying(at: int, value: int, size: int = 4, data: bytes = SCALE) -> bytes:
    """Return a recording with another number in its header."""
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


# Offsets in the header: its own size, channels, rate, bytes a second, bits, and the samples' size.
WHOLE, CHANNELS, RATE, BYTE_RATE, BITS, SAMPLES = 4, 22, 24, 28, 34, 40


@pytest.mark.parametrize("rate", [48_000, 96_000, 192_000])
def test_a_higher_rate_makes_no_recording_cheaper(rate):
    facts, plain = measure(".wav", lying(RATE, rate, data=recording(b"\xc0\x40" * 48_000)), "")
    assert facts == b'{"seconds": 2.0}'
    assert measure(".wav", plain, "") == (facts, b"")


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        (lying(BYTE_RATE, 1), 1.0),
        # Fewer samples than the file has: the rest is sold to nobody.
        (lying(SAMPLES, 4000), 0.5),
        (SCALE + b"LIST\4\0\0\0more", 1.0),
        # A second block of samples, which other readers may add.
        (SCALE + SCALE[36:], 1.0),
        (lying(CHANNELS, 2, 2), 0.5),
        (lying(BITS, 16, 2), 0.5),
    ],
)
def test_the_provider_gets_what_was_measured_and_nothing_else(data, seconds):
    facts, plain = measure(".wav", data, "")
    assert json.loads(facts) == {"seconds": seconds}
    assert len(plain) == 44 + int(8000 * seconds) * (2 if plain[CHANNELS] * plain[BITS] > 8 else 1)
    assert measure(".wav", plain, "") == (facts, b"")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RIFF",
        lying(WHOLE, 40),
        lying(SAMPLES, 8001),
        lying(SAMPLES, 2**32 - 1),
        lying(CHANNELS, 0, 2),
        lying(RATE, 192_001),
        lying(BITS, 24, 2),
        lying(BITS, 0, 2),
        SCALE[:44],
        SCALE[:-1],
        SCALE[:30],
        b"\x89PNG\r\n\x1a\n",
        SCALE[:24] + b"\0\0\0\0" + SCALE[28:],
    ],
)
def test_a_file_that_is_no_whole_recording_is_refused(data):
    with pytest.raises(SandboxRefusal):
        measure(".wav", data, "")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        MIDI[:-1],
        transcribe(recording(b"\x80" * 8000)),
        struct.pack(">4sIHHH", b"MThd", 6, 1, 10_000, 480) + b"MTrk\0\0\0\0" * 10_000,
        MIDI[:22] + b"\xff" * 8,
        # A tempo after the first note, and a wait of nine bytes.
        track(b"\0\x90\x3c\x40\x60\xff\x51\x03\0\0\1\0\xff\x2f\0"),
        track(b"\xff" * 8 + b"\0\x90\x3c\x40\0\xff\x2f\0"),
    ],
)
def test_a_result_that_is_no_melody_is_refused(data):
    with pytest.raises(SandboxRefusal):
        check_midi("", "audio/midi", data)
