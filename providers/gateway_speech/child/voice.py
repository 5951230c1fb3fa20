"""Reads a text aloud: hibari's English voice, distilled from Kokoro-82M."""

from collections.abc import Iterator

import numpy as np
from hibari import Hibari

from gateway.sandbox.errors import SandboxRefusal
from gateway_speech.child import pieces, reading, sounds
from gateway_speech.child.resampling import Samples

RATE = 24_000
# As a WAV, 20 minutes are within the size of a result.
MAX_SECONDS = 1_200
# The model's memory grows with them; a piece of plain text has fewer.
MAX_PHONEMES = 240
_SEED = 0
# The voice begins and ends each piece with silence, below this level.
_SILENCE = 0.004
_EDGE_S = 0.04
_WARM_TEXT = "Dr. Smith paid $1.5 million on 3 May 2021 for a zyxqueric 20 km road, e.g. the A1."
_voices: list[Hibari] = []


def warm() -> None:
    """Load the voice and its dictionaries, before the fork."""
    sounds.warm()
    _voices.append(Hibari(threads=1))
    for _ in _read(pieces.Piece(reading.spoken(_WARM_TEXT), 0.0)):
        pass


def speak(output_format: str, text: str) -> bytes:
    """Return the text, read aloud, as a sound file."""
    encoder = sounds.Encoder(output_format, RATE)
    frames = 0
    for piece in pieces.split(reading.spoken(text)):
        for part in (*_read(piece), np.zeros(int(piece.pause_s * RATE), np.float32)):
            frames += len(part)
            if frames > MAX_SECONDS * RATE:
                raise SandboxRefusal(
                    f"The text takes more than {MAX_SECONDS // 60} minutes to read: send parts."
                )
            encoder.write(part)
    if not frames:
        raise SandboxRefusal("The text contains no words to read aloud.")
    return encoder.finish()


def _read(piece: pieces.Piece) -> Iterator[Samples]:
    voice = _voices[0]
    for phonemes in voice.phonemize(piece.text):
        for part in _short(phonemes):
            sound = voice.from_phonemes(part, seed=_SEED)
            yield _trimmed(np.asarray(sound, np.float32))


def _short(phonemes: str) -> Iterator[str]:
    """Yield parts that the model has the memory for."""
    while len(phonemes) > MAX_PHONEMES:
        at = phonemes.rfind(" ", 1, MAX_PHONEMES)
        at = at if at > 0 else MAX_PHONEMES
        yield phonemes[:at]
        phonemes = phonemes[at:].lstrip()
    yield phonemes


def _trimmed(sound: Samples) -> Samples:
    loud = np.flatnonzero(np.abs(sound) > _SILENCE)
    if not len(loud):
        return sound[:0]
    edge = int(_EDGE_S * RATE)
    return sound[max(0, loud[0] - edge) : loud[-1] + edge]
