"""Decodes sounds in blocks by libsndfile."""

import io

import attrs
import soundfile

from gateway_media.child.bounds import PRICED_RATE, TOO_LONG, UnfitError, check_form

_BLOCK_FRAMES = 1 << 18
_SAMPLE_BYTES = 4


class _Streamed(soundfile.SoundFile):  # type: ignore[misc]  # no types
    """A file that is read once, from its start; soundfile seeks after each block of others."""

    def seekable(self) -> bool:
        """Return False."""
        return False


@attrs.frozen(kw_only=True)
class Decoded:
    """The length of a sound: by its samples, and as its header promises it."""

    frames: int
    rate: int
    promised: int

    @property
    def seconds(self) -> float:
        """The length by the decoded samples."""
        return self.frames / self.rate


def decode(data: bytes, *, most_seconds: float, copy_to: io.BytesIO | None = None) -> Decoded:
    """Decode all of a sound, and write it as FLAC to `copy_to` if that is given.

    Raises `UnfitError` if it cannot be decoded, or is too long.
    """
    try:
        with _Streamed(io.BytesIO(data)) as sound:
            check_form(sound.samplerate, sound.channels)
            frames = _decode(sound, most_seconds, copy_to)
            return Decoded(frames=frames, rate=sound.samplerate, promised=sound.frames)
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError):
        raise UnfitError("cannot be decoded") from None


def _decode(sound: _Streamed, most_seconds: float, copy_to: io.BytesIO | None) -> int:
    buffer = bytearray(_BLOCK_FRAMES * sound.channels * _SAMPLE_BYTES)
    # A higher rate is no longer sound.
    frames, most = 0, int(most_seconds * min(sound.samplerate, PRICED_RATE))
    copy = None
    if copy_to is not None:
        form = (sound.samplerate, sound.channels, sound.subtype)
        copy = soundfile.SoundFile(copy_to, "w", *form, format="FLAC")
    try:
        while read := sound.buffer_read_into(buffer, "int32"):
            frames += read
            if frames > most:
                raise UnfitError(TOO_LONG.format(most_seconds))
            if copy is not None:
                used = read * sound.channels * _SAMPLE_BYTES
                copy.buffer_write(memoryview(buffer)[:used], "int32")
    finally:
        if copy is not None:
            copy.close()
    return frames


def warm() -> None:
    """Load the decoder with all that it needs, before the fork."""
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", 8000, 1, "PCM_16", format="FLAC") as sound:
        sound.buffer_write(bytes(320), "int16")
    decode(file.getvalue(), most_seconds=1, copy_to=io.BytesIO())
