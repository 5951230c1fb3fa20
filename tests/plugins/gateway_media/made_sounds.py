"""Small sounds, made by code."""

import io
import struct

import soundfile

from gateway_media.child.ogg import checksum

RATE = 8000
MOST_BYTES = "7500000"
# A frame of MPEG 2.5 at 8 kHz with empty granules.
MP3_FRAME = b"\xff\xe3\x18\xc4" + bytes(68)
MP3_FRAME_S = 576 / 8000


def encoded(seconds: float, form: str, subtype: str, *, rate: int = RATE, silent: bool = False):
    """Return a tone of one channel in a format of libsndfile."""
    tone = b"\0\x20" * 8 + b"\0\xe0" * 8
    samples = (bytes(32) if silent else tone) * (int(seconds * rate) // 16 + 1)
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", rate, 1, subtype, format=form) as sound:
        sound.buffer_write(samples[: 2 * int(seconds * rate)], "int16")
    # libsndfile chooses a random serial.
    return with_checksums(file.getvalue(), serial=1)


def with_checksums(data: bytes, serial: int | None = None) -> bytes:
    """Return an Ogg with right checksums, and a serial; other files stay as they are."""
    if data[:4] != b"OggS":
        return data
    made = b""
    for part in data[4:].split(b"OggS"):
        one = b"OggS" + part
        if serial is not None:
            one = one[:14] + serial.to_bytes(4, "little") + one[18:]
        end = 27 + one[26] + sum(one[27 : 27 + one[26]]) if len(one) > 26 else 0
        is_whole = 0 < end <= len(one)
        made += one[:22] + crc(one[:end]) + one[26:] if is_whole else one
    return made


def crc(one: bytes) -> bytes:
    return checksum(one[:22] + bytes(4) + one[26:]).to_bytes(4, "little")


def chunk(name: bytes, body: bytes, size: int | None = None) -> bytes:
    size = len(body) if size is None else size
    return name + struct.pack("<I", size) + body + bytes(len(body) % 2)


def wav(*chunks: bytes, size: int | None = None) -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


def wav_form(rate: int = RATE, bits: int = 8, channels: int = 1, tag: int = 1) -> bytes:
    size = channels * bits // 8
    return chunk(b"fmt ", struct.pack("<HHIIHH", tag, channels, rate, rate * size, size, bits))


def page(packets, *, flags=0, granule=0, serial=1, number=0) -> bytes:
    """Return a page of whole packets of less than 255 bytes."""
    head = struct.pack("<4sBBqIIIB", b"OggS", 0, flags, granule, serial, number, 0, len(packets))
    whole = head + bytes(map(len, packets)) + b"".join(packets)
    return whole[:22] + crc(whole) + whole[26:]


OPUS_HEAD = b"OpusHead\1\1" + struct.pack("<HIhB", 0, RATE, 0, 0)
OPUS_TAGS = b"OpusTags" + struct.pack("<I4sI", 4, b"test", 0)
# 20 ms, without data: decoders play silence.
OPUS_PACKET = bytes((1 << 3,))
OPUS_SAMPLES = 960


def opus(count: int, granule: int | None = None, *, serial: int = 1, head: bytes = OPUS_HEAD):
    """Return an Ogg with Opus packets of 20 ms."""
    last = count * OPUS_SAMPLES if granule is None else granule
    made = page([head], flags=2, serial=serial) + page([OPUS_TAGS], serial=serial, number=1)
    for number, at in enumerate(range(0, count, 250), 2):
        end = min(count, at + 250)
        packets, is_last = [OPUS_PACKET] * (end - at), end == count
        granule = last if is_last else end * OPUS_SAMPLES
        flags = 4 if is_last else 0
        made += page(packets, flags=flags, granule=granule, serial=serial, number=number)
    return made


def restamped(ogg: bytes, granule: int) -> bytes:
    """Return an Ogg whose last page has another stamp."""
    at = ogg.rindex(b"OggS")
    return with_checksums(ogg[: at + 6] + granule.to_bytes(8, "little") + ogg[at + 14 :])
