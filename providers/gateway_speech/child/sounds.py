"""Decodes and encodes sounds by libsndfile, block by block."""

import io
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import soundfile

from gateway.sandbox.errors import SandboxRefusal
from gateway_speech.child.resampling import Resampler, Samples

# `output_format` to libsndfile's format and subtype.
FORMS = {
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "opus": ("OGG", "OPUS"),
    "flac": ("FLAC", "PCM_16"),
    "wav": ("WAV", "PCM_16"),
}
_READ = (*FORMS.values(), ("OGG", "VORBIS"))
_BLOCK_S = 10
# Of 16 bits.
FULL_SCALE = 32_767.0
# Of the louder channel's power; a silent channel beside it leaves a quarter.
_CANCELLED = 0.05
_UNREADABLE = "The recording cannot be decoded: save it again as WAV, FLAC, MP3 or Opus."
_MAX_RATE, _MIN_RATE, _MAX_CHANNELS = 192_000, 4_000, 2


class Recording:
    """A buyer's recording, which is decoded once, from its start."""

    def __init__(self, data: bytes) -> None:
        """Read the header. Raises `SandboxRefusal` if there is none."""
        try:
            self._file = soundfile.SoundFile(io.BytesIO(data))
        except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError):
            raise SandboxRefusal(_UNREADABLE) from None
        self.rate: int = self._file.samplerate
        self.channels: int = self._file.channels
        if not (_MIN_RATE <= self.rate <= _MAX_RATE and 1 <= self.channels <= _MAX_CHANNELS):
            raise SandboxRefusal("The recording's sample rate or channels are out of bounds.")

    def blocks(self) -> Iterator[Samples]:
        """Yield blocks of ten seconds, with a column for each channel."""
        while True:
            try:
                block = self._file.read(self.rate * _BLOCK_S, dtype="float32", always_2d=True)
            except (soundfile.SoundFileError, RuntimeError):
                raise SandboxRefusal(_UNREADABLE) from None
            if not len(block):
                return
            # A file with floating-point samples may contain anything.
            yield np.clip(np.nan_to_num(block, nan=0.0), -1.0, 1.0)


def read_mono(data: bytes, rate: int, most_seconds: int) -> npt.NDArray[np.int16]:
    """Return a recording as one channel with a rate, in 16 bits to save memory.

    Raises `SandboxRefusal` if it is too long or cannot be decoded.
    """
    recording = Recording(data)
    resampler = Resampler(recording.rate, rate)
    # Memory that is not written takes no place.
    kept = np.empty((most_seconds + 1) * rate, np.int16)
    frames = 0
    for part in _resampled(recording, resampler):
        if frames + len(part) > len(kept):
            raise SandboxRefusal(f"The recording has more than {most_seconds:,} seconds.")
        kept[frames : frames + len(part)] = np.rint(np.clip(part, -1.0, 1.0) * FULL_SCALE)
        frames += len(part)
    return kept[:frames]


def _resampled(recording: Recording, resampler: Resampler) -> Iterator[Samples]:
    for block in recording.blocks():
        yield resampler.push(np.ascontiguousarray(_mixed(block)))
    yield resampler.finish()


def _mixed(block: Samples) -> Samples:
    """Return the mean of channels; the louder one if they cancel each other."""
    mean = block.mean(1)
    powers = (block**2).mean(0)
    is_cancelled = (mean**2).mean() < _CANCELLED * powers.max()
    return block[:, powers.argmax()] if is_cancelled else mean


class Encoder:
    """Writes a sound of one or two channels in an ordered format."""

    def __init__(self, output_format: str, rate: int, channels: int = 1) -> None:
        """Begin a file."""
        form, subtype = FORMS[output_format]
        self._buffer = io.BytesIO()
        self._file = soundfile.SoundFile(
            self._buffer, "w", rate, channels, subtype=subtype, format=form
        )
        # Encoders of Ogg overflow their stack with large blocks.
        self._block = rate

    def write(self, samples: Samples) -> None:
        """Append samples; those beyond full scale are clipped."""
        for at in range(0, len(samples), self._block):
            self._file.write(np.clip(samples[at : at + self._block], -1.0, 1.0))

    def finish(self) -> bytes:
        """Return the file."""
        self._file.close()
        return self._buffer.getvalue()


def warm() -> None:
    """Use each decoder and encoder once, before the fork."""
    silence = np.zeros(4_800, np.float32)
    for form, subtype in _READ:
        file = io.BytesIO()
        soundfile.write(file, silence, 24_000, format=form, subtype=subtype)
        read_mono(file.getvalue(), 16_000, 1)
    for output_format in FORMS:
        encoder = Encoder(output_format, 24_000)
        encoder.write(silence)
        encoder.finish()
