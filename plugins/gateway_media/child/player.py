"""Decodes sound of an M4A or a WebM, and the first picture of a video, by PyAV."""

import io

import av
import av.container
import av.error
from av.codec.context import Flags2

from gateway_media import samples
from gateway_media.child.bounds import (
    MOST_CHANNELS,
    MOST_SECONDS,
    TOO_LONG,
    UnfitError,
    check_form,
    priced_seconds,
)

MP4, WEBM = "mp4", "matroska"
_UNDECODED = "cannot be decoded"
# Until the first picture: a damaged begin, and pictures that are shown later.
_MOST_PACKETS = 64
# Larger ones would need more memory than the child has.
_MOST_PIXELS = 4_096 * 2_304


def sound_seconds(data: bytes, form: str, *, most_channels: int = MOST_CHANNELS) -> float:
    """Return the seconds of all samples, also of those that the file leaves out.

    Raises `UnfitError` without any, and for more channels.
    """
    seconds = 0.0
    try:
        with _opened(data, form) as container:
            stream = container.streams.audio[0]
            stream.codec_context.thread_count = 1
            stream.codec_context.flags2 |= Flags2.skip_manual
            for frame in container.decode(stream):
                check_form(frame.sample_rate, frame.layout.nb_channels, most_channels)
                seconds += priced_seconds(frame.samples, frame.sample_rate)
                if seconds > MOST_SECONDS:
                    raise UnfitError(TOO_LONG.format(MOST_SECONDS))
    except (av.error.FFmpegError, ValueError, IndexError):
        raise UnfitError(_UNDECODED) from None
    if not seconds:
        raise UnfitError("has no samples")
    return seconds


def check_picture(data: bytes, form: str, pixels: int) -> None:
    """Raise `UnfitError` for a video of which no picture can be decoded; a huge one is left."""
    if pixels > _MOST_PIXELS:
        return
    try:
        with _opened(data, form) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1
            for count, packet in enumerate(container.demux(stream)):
                if count > _MOST_PACKETS:
                    break
                if _has_picture(packet):
                    return
    except (av.error.FFmpegError, ValueError, IndexError):
        pass
    raise UnfitError(_UNDECODED)


def _has_picture(packet: "av.Packet[av.VideoStream]") -> bool:
    try:
        return bool(packet.decode())
    except av.error.FFmpegError:
        # The next one may be whole.
        return False


def _opened(data: bytes, form: str) -> av.container.InputContainer:
    # An edit list may leave out samples that other readers play.
    options = {"ignore_editlist": "1"} if form == MP4 else {}
    return av.open(io.BytesIO(data), "r", form, options=options, metadata_errors="ignore")


def warm() -> None:
    """Load the decoders with all that they need, before the fork."""
    sound_seconds(samples.M4A, MP4)
    sound_seconds(samples.WEBM_SOUND, WEBM)
    check_picture(samples.MP4, MP4, 0)
    check_picture(samples.WEBM, WEBM, 0)
