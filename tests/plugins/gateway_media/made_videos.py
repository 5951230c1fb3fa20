"""Small videos, made by PyAV, and changed part by part."""

import io
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import av
import av.error

from gateway_media.child.bounds import PRICED_FRAME_RATE

RATE = 48_000
# Containers of an MP4's boxes, and of a WebM's elements, up to the tables.
_BOXES = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"dinf", b"edts")
_FRAME_SAMPLES = 960

Change = Callable[[bytes], bytes]


def movie(
    form: str,
    *,
    frames: int = 0,
    rate: int = 10,
    sounds: tuple[str, ...] = (),
    seconds: float = 1.0,
    side: int = 64,
    codec: str = "",
    **options: str,
) -> bytes:
    """Return a movie with a video track of flat pictures, and tracks of silence by their codecs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "movie"
        # Without random IDs.
        options = {"fflags": "+bitexact"} | options
        with av.open(str(path), "w", format=form, options=options) as container:
            codec = codec or ("libvpx" if form == "webm" else "mpeg4")
            _fill(container, codec, frames, rate, sounds, seconds, side)
        return path.read_bytes()


def _fill(container, codec, frames, rate, sounds, seconds, side) -> None:
    streams = [_add_sound(container, one) for one in sounds]
    if frames:
        video = container.add_stream(codec, rate=rate)
        video.width = video.height = side
        video.pix_fmt = "yuv420p"
        for number in range(frames):
            frame = av.VideoFrame(side, side, "yuv420p")
            for plane in frame.planes:
                plane.update(bytes((number % 7 * 20,)) * plane.buffer_size)
            frame.pts = number
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
    for stream in streams:
        _add_silence(container, stream, int(seconds * RATE))


def _add_sound(container, codec: str):
    codec, _, layout = codec.partition(":")
    # FFmpeg's own Vorbis is experimental, and has two channels.
    options = {"strict": "-2"} if codec == "vorbis" else {}
    stream = container.add_stream(codec, rate=RATE, options=options)
    stream.layout = layout or ("stereo" if codec == "vorbis" else "mono")
    return stream


def _add_silence(container, stream, samples: int) -> None:
    form = stream.codec_context.format.name
    for at in range(0, samples, _FRAME_SAMPLES):
        frame = av.AudioFrame(form, stream.layout.name, min(_FRAME_SAMPLES, samples - at))
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        frame.sample_rate, frame.pts = RATE, at
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


def box(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(body), name) + body


def boxes(data: bytes) -> list[tuple[bytes, bytes]]:
    """Return names and contents of boxes."""
    found, at = [], 0
    while at < len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        found.append((name, data[at + 8 : at + size]))
        at += size
    return found


def changed(data: bytes, name: bytes, change: Change) -> bytes:
    """Return an MP4 with a change to the content of each box of a name.

    The tables come last in these files, so no sample moves.
    """
    made = b""
    for one, body in boxes(data):
        if one == name:
            made += box(one, change(body))
        else:
            made += box(one, changed(body, name, change) if one in _BOXES else body)
    return made


def added(data: bytes, name: bytes, more: bytes) -> bytes:
    """Return an MP4 with more at the end of each box of a name."""
    return changed(data, name, lambda body: body + more)


def within_entry(data: bytes, more: bytes) -> bytes:
    """Return an MP4 with more at the end of the sample entry of each track."""

    def longer(body: bytes) -> bytes:
        entry = body[8:] + more
        return body[:8] + len(entry).to_bytes(4) + entry[4:]

    return changed(data, b"stsd", longer)


def with_order(data: bytes, name: bytes, last: bytes) -> bytes:
    """Return an MP4 with one box as the last of each box of a name."""

    def ordered(body: bytes) -> bytes:
        found = sorted(boxes(body), key=lambda one: one[0] == last)
        return b"".join(box(*one) for one in found)

    return changed(data, name, ordered)


def packets(data: bytes, kind: str) -> list[bytes]:
    """Return the packets of a track, "audio" or "video"."""
    with av.open(io.BytesIO(data)) as container:
        return [bytes(one) for one in container.demux(**{kind: 0}) if one.size]


def repacked(data: bytes, mark: bytes, samples: list[bytes], ticks: int) -> bytes:
    """Return an MP4 with other samples in the track whose form has a mark."""

    def with_place(place: int) -> bytes:
        def tables(body: bytes) -> bytes:
            if mark not in body:
                return body
            count = len(samples)
            sizes = b"".join(len(one).to_bytes(4) for one in samples)
            return b"".join(
                (
                    box(b"stsd", dict(boxes(body))[b"stsd"]),
                    box(b"stts", struct.pack(">4I", 0, 1, count, ticks)),
                    box(b"stsc", struct.pack(">5I", 0, 1, 1, count, 1)),
                    box(b"stsz", struct.pack(">3I", 0, 0, count) + sizes),
                    box(b"stco", struct.pack(">3I", 0, 1, place)),
                )
            )

        return changed(data, b"stbl", tables)

    return with_place(len(with_place(0)) + 8) + box(b"mdat", b"".join(samples))


def at(offset: int, value: int, size: int = 4) -> Change:
    """Return a change of the number at an offset."""
    return lambda body: body[:offset] + value.to_bytes(size) + body[offset + size :]


# -- WebM

SEGMENT, INFO, TRACKS, ENTRY, CLUSTER = 0x18538067, 0x1549A966, 0x1654AE6B, 0xAE, 0x1F43B675
DURATION, SCALE = 0x4489, 0x2AD7B1
_MASTERS = (SEGMENT, TRACKS, CLUSTER, ENTRY, INFO)


def element(name: int, body: bytes, *, is_open: bool = False) -> bytes:
    """Return an element; an open one has no known end."""
    size = b"\xff" if is_open else b"\1" + len(body).to_bytes(7)
    return name.to_bytes((name.bit_length() + 7) // 8) + size + body


def elements(data: bytes) -> list[tuple[int, bytes]]:
    """Return IDs and contents of elements."""
    found, at = [], 0
    while at < len(data):
        length = 9 - data[at].bit_length()
        name, at = int.from_bytes(data[at : at + length]), at + length
        length = 9 - data[at].bit_length()
        size = int.from_bytes(data[at : at + length]) & (1 << 7 * length) - 1
        found.append((name, data[at + length : at + length + size]))
        at += length + size
    return found


def rewritten(data: bytes, name: int, change: Change, *, is_open: bool = False) -> bytes:
    """Return a WebM with a change to the content of each element of an ID."""
    made = b""
    for one, body in elements(data):
        if one == name:
            made += element(one, change(body), is_open=is_open)
        else:
            is_inner = one not in _MASTERS
            made += element(
                one, body if is_inner else rewritten(body, name, change, is_open=is_open)
            )
    return made


def without(body: bytes, name: int) -> bytes:
    """Return elements but those of an ID."""
    return b"".join(element(one, more) for one, more in elements(body) if one != name)


def retimed(data: bytes, ticks: float) -> bytes:
    """Return a WebM that promises another duration."""
    promise = element(DURATION, struct.pack(">d", ticks))
    return rewritten(data, INFO, lambda body: without(body, DURATION) + promise)


def seen_seconds(data: bytes, **options: str) -> float:
    """Return the length of a file as PyAV plays it."""
    longest = 0.0
    with av.open(io.BytesIO(data), options=options, metadata_errors="ignore") as container:
        for stream in container.streams:
            if stream.type not in ("audio", "video"):
                continue
            container.seek(0)
            longest = max(longest, _played(container, stream))
    return longest


def _played(container, stream) -> float:
    """Return the seconds of the decoded samples, or of the times and the number of pictures."""
    seconds = end = 0.0
    for packet in container.demux(stream):
        if packet.pts is not None:
            last = packet.pts + (packet.duration or 0)
            end = max(end, float(last * packet.time_base))
        for frame in _decoded(packet):
            if stream.type == "audio":
                seconds += frame.samples / frame.sample_rate
            else:
                seconds += 1 / PRICED_FRAME_RATE
                end = max(end, float((frame.pts or 0) * packet.time_base))
    return seconds if stream.type == "audio" else max(seconds, end)


def _decoded(packet) -> list:
    try:
        return packet.decode()
    except av.error.FFmpegError:
        # A player goes on with the next packet.
        return []
