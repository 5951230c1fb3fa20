"""Reads untrusted bytes; runs in a child process of its own, see `gateway.Sandbox`."""

import io
import itertools
import json
import math
import struct
import wave

from gateway.sandbox.errors import SandboxRefusal

# A window of this many seconds is one note, or silence below a tenth of the range.
_WINDOW_S = 0.1
_QUIET = 12
_TICKS_PER_S = 960
_MOST_RATE = 192_000
# A header may promise any rate, and the price is by the second. So a second has at most so many
# samples: a higher rate makes no recording cheaper.
_PRICED_RATE = 48_000
_MAX_TRACKS = 100
_NOTE_ON, _META, _TEMPO = 0x9, 0xFF, 0x51
# A number of variable length has at most so many bytes.
_MAX_NUMBER_BYTES = 4
# The length of a channel message's data, by its upper four bits.
_LENGTHS = {0x8: 2, 0x9: 2, 0xA: 2, 0xB: 2, 0xC: 1, 0xD: 1, 0xE: 2}


def measure(_extension: str, data: bytes, _most_bytes: str) -> tuple[bytes, bytes]:
    """Return the seconds of a WAV by its samples, and the WAV of what was measured.

    Other readers may follow another chunk or length of the same file, so the provider gets the
    measured samples under a header that is right.
    """
    header, frames = _open(data)
    seconds = len(frames) / header.sampwidth / header.nchannels
    seconds /= min(header.framerate, _PRICED_RATE)
    plain = _write(header, frames)
    return json.dumps({"seconds": seconds}).encode(), b"" if plain == data else plain


def transcribe(data: bytes) -> bytes:
    """Return the notes of a WAV as MIDI; none for silence."""
    samples, rate = _read(data)
    size = max(1, int(rate * _WINDOW_S))
    windows = [samples[at : at + size] for at in range(0, len(samples), size)]
    track, waiting, before = b"", 0, 0
    for note in [*(_note_of(window, rate) for window in windows), 0]:
        if note != before:
            for status, number in ((0x80, before), (0x90, note)):
                if number:
                    track += _variable(waiting) + bytes((status, number, 64))
                    waiting = 0
            before = note
        waiting += int(_TICKS_PER_S * _WINDOW_S)
    track += b"\0\xff\x2f\0"
    head = struct.pack(">4sIHHH", b"MThd", 6, 0, 1, _TICKS_PER_S // 2)
    return head + b"MTrk" + struct.pack(">I", len(track)) + track


def check_midi(_wanted: str, _media_type: str, data: bytes) -> tuple[bytes, bytes]:
    """Return media type and seconds of a MIDI file; raises `SandboxRefusal` without notes."""
    try:
        seconds, notes = _read_midi(data)
    except (struct.error, IndexError, KeyError):
        raise SandboxRefusal("it is no whole MIDI file") from None
    if not notes:
        raise SandboxRefusal("it has no notes")
    return json.dumps({"media_type": "audio/midi", "seconds": seconds}).encode(), b""


def _read(data: bytes) -> tuple[list[int], int]:
    """Return the samples of the first channel, around 0 and scaled to 8 bits, and their rate."""
    header, frames = _open(data)
    if header.sampwidth == 1:
        return [one - 128 for one in frames[:: header.nchannels]], header.framerate
    # The upper byte of each sample of 16 bits.
    upper = frames[1 :: 2 * header.nchannels]
    return [one - 256 * (one > 127) for one in upper], header.framerate


def _write(header: wave._wave_params, frames: bytes) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams(header)
        sound.writeframes(frames)
    return file.getvalue()


def _open(data: bytes) -> tuple[wave._wave_params, bytes]:
    """Return the header of a WAV, and its frames: as many as it promises."""
    try:
        with wave.open(io.BytesIO(data)) as sound:
            header = sound.getparams()
            frames = sound.readframes(header.nframes)
    except (wave.Error, EOFError, struct.error, ValueError):
        raise SandboxRefusal("The recording is no WAV with plain samples.") from None
    if header.sampwidth not in (1, 2) or not header.framerate:
        raise SandboxRefusal("The recording has no samples of 8 or 16 bits.")
    if header.framerate > _MOST_RATE:
        raise SandboxRefusal(f"The recording has more than {_MOST_RATE:,} samples a second.")
    if len(frames) < header.nframes * header.sampwidth * header.nchannels:
        raise SandboxRefusal("The recording is cut off: its header promises more samples.")
    return header, frames


def _note_of(window: list[int], rate: int) -> int:
    """Return the MIDI number of a window's pitch by its zero crossings; 0 for silence."""
    if max(map(abs, window)) < _QUIET:
        return 0
    crossings = sum(1 for a, b in itertools.pairwise(window) if (a < 0) != (b < 0))
    hertz = crossings * rate / (2 * len(window))
    return min(127, max(1, round(69 + 12 * math.log2(hertz / 440)))) if hertz else 0


def _variable(number: int) -> bytes:
    """Return a number in MIDI's variable length."""
    written = bytes((number & 0x7F,))
    while number := number >> 7:
        written = bytes((0x80 | number & 0x7F,)) + written
    return written


def _read_midi(data: bytes) -> tuple[float, int]:
    """Return the length in seconds and the number of notes, at one tempo."""
    kind, size, _, tracks, division = struct.unpack_from(">4sIHHH", data)
    if kind != b"MThd" or not 0 < tracks <= _MAX_TRACKS or not 0 < division < 1 << 15:
        raise SandboxRefusal(f"it has another header, or more than {_MAX_TRACKS} tracks")
    at, ticks, notes, tempo = 8 + size, 0, 0, 500_000
    for _ in range(tracks):
        kind, size = struct.unpack_from(">4sI", data, at)
        if kind != b"MTrk" or at + 8 + size > len(data):
            raise SandboxRefusal("it is cut off")
        length, found, tempo = _read_track(data[at + 8 : at + 8 + size], tempo)
        ticks, notes, at = max(ticks, length), notes + found, at + 8 + size
    return ticks * tempo / division / 10**6, notes


def _read_track(data: bytes, tempo: int) -> tuple[int, int, int]:
    """Return a track's ticks and notes, and the tempo in microseconds for a quarter."""
    at = ticks = notes = status = 0
    while at < len(data):
        wait, at = _read_variable(data, at)
        ticks += wait
        if data[at] & 0x80:
            status, at = data[at], at + 1
        if status >= 0xF0:
            kind = data[at] if status == _META else 0
            size, at = _read_variable(data, at + (status == _META))
            if kind == _TEMPO and ticks:
                raise SandboxRefusal("its tempo changes, so its length is not known")
            if kind == _TEMPO:
                tempo = int.from_bytes(data[at : at + 3])
        else:
            size = _LENGTHS[status >> 4]
            notes += status >> 4 == _NOTE_ON and data[at + 1] > 0
        at += size
    return ticks, notes, tempo


def _read_variable(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for _ in range(_MAX_NUMBER_BYTES):
        number = number << 7 | data[at] & 0x7F
        at += 1
        if not data[at - 1] & 0x80:
            return number, at
    raise SandboxRefusal("it has a number of more than four bytes")
