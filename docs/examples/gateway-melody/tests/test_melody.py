"""The provider passes the gateway's tests, and the sandbox's functions refuse hostile files."""

import struct
from typing import ClassVar

import gateway_melody
import pytest
from gateway_melody.child import check_midi, measure, transcribe
from gateway_melody.sample import SCALE, recording

from gateway.sandbox.errors import SandboxRefusal
from gateway.testing import ProviderContract

MIDI = transcribe(SCALE)


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


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RIFF",
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
    ],
)
def test_a_result_that_is_no_melody_is_refused(data):
    with pytest.raises(SandboxRefusal):
        check_midi("", "audio/midi", data)
