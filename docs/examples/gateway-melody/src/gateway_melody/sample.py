"""The sample for documents, tests and `gateway check --live`: one second with two notes."""

import io
import wave

_RATE = 8000


def _tone(hertz: int, seconds: float) -> bytes:
    """Return a square wave in 8 bits."""
    half = _RATE // (2 * hertz)
    return ((b"\xc0" * half + b"\x40" * half) * _RATE)[: int(_RATE * seconds)]


def recording(samples: bytes, rate: int = _RATE) -> bytes:
    """Return a WAV of one channel with samples of 8 bits."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 1, rate, 0, "NONE", ""))
        sound.writeframes(samples)
    return file.getvalue()


SCALE = recording(_tone(250, 0.5) + _tone(500, 0.5))
