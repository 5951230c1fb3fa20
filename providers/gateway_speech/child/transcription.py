"""Writes down speech: Whisper by CTranslate2."""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import ctranslate2
import numpy as np
import numpy.typing as npt

from gateway.sandbox.errors import SandboxRefusal
from gateway_speech.child import activity, segments, sounds, transcripts
from gateway_speech.child.mel import RATE, WINDOW_S, log_mel
from gateway_speech.child.resampling import Samples
from gateway_speech.child.vocabulary import Vocabulary
from gateway_speech.weights import WHISPER_BASE, WHISPER_TINY, path_of

MAX_SECONDS = 1_800
_FILES = ("config.json", "model.bin", "vocabulary.txt")
_LEAST_S = 0.1
# The limits of OpenAI's own program: a text that repeats itself, and one that the model doubts, are
# read again with some chance. People repeat themselves too, so that a repetition counts only if it
# has more words than its sound has room for.
_MOST_REPETITION, _LEAST_LIKELY, _NO_SPEECH = 2.4, -1.0, 0.6
_TEMPERATURES = (0.0, 0.4, 0.8)
# CTranslate2 spends half of it on the transcript.
_MOST_TOKENS = 448
_MOST_FIRST_STAMP = 50
_WORDS_PER_VOICED_S, _WORDS_AT_ONCE = 8.0, 2
# Of voice without a word in the transcript, which is marked.
UNCLEAR = "[unclear]"
_LEAST_UNCLEAR_S = 1.0
# Of voice behind a sentence, before the model is asked for more. Its times are not exact.
_LEAST_REST_S = 0.4
_SEED = 0


@attrs.frozen
class _Loaded:
    files: dict[str, bytes]
    vocabulary: Vocabulary


_loaded: list[_Loaded] = []


def warm() -> None:
    """Read the weights of the small model, before the fork."""
    _warm(path_of(WHISPER_TINY))


def warm_base() -> None:
    """Read the weights of the larger model."""
    _warm(path_of(WHISPER_BASE))


def _warm(folder: Path) -> None:
    # The model's threads do not survive the fork, so that each child makes the model of the files.
    sounds.warm()
    files = {name: (folder / name).read_bytes() for name in _FILES}
    _loaded.append(_Loaded(files, Vocabulary.parse(files["vocabulary.txt"].decode())))
    log_mel(np.zeros(RATE, np.float32))
    activity.find(np.zeros(RATE, np.int16))


def transcribe(output_format: str, data: bytes) -> bytes:
    """Return the transcript of a recording as `txt`, `srt`, `vtt` or `json`."""
    samples = sounds.read_mono(data, RATE, MAX_SECONDS)
    total_s = len(samples) / RATE
    if total_s < _LEAST_S:
        raise SandboxRefusal("The recording is empty.")
    found = segments.in_order(list(_sentences(samples)), total_s)
    return transcripts.WRITERS[output_format](transcripts.Transcript(found, total_s)).encode()


def _sentences(samples: npt.NDArray[np.int16]) -> Iterator[segments.Segment]:
    active = activity.find(samples)
    listener: _Listener | None = None
    at, total_s, least_s = 0.0, len(samples) / RATE, activity.LEAST_VOICED_S
    while at < total_s - _LEAST_S:
        if not active.has_speech(at, at + WINDOW_S, least_s):
            at, least_s = at + WINDOW_S, activity.LEAST_VOICED_S
            continue
        listener = listener or _Listener.load()
        part = samples[int(at * RATE) :][: WINDOW_S * RATE]
        voiced_s = active.voiced_s(at, at + WINDOW_S)
        window = listener.listen((part / sounds.FULL_SCALE).astype(np.float32), voiced_s)
        heard = list(_heard(window, at, active))
        # Speech of which nothing was understood; the rest behind a sentence may be a breath.
        if not heard and (least_s < _LEAST_REST_S or voiced_s >= _LEAST_UNCLEAR_S):
            heard = [segments.Segment(*active.narrowed(at, min(at + WINDOW_S, total_s)), UNCLEAR)]
        yield from heard
        at, least_s = at + (window.step_s if window.segments else WINDOW_S), _LEAST_REST_S


def _heard(
    window: segments.Window, at: float, active: activity.Activity
) -> Iterator[segments.Segment]:
    """Yield the sentences near voiced speech, without the pauses around them."""
    last = ""
    for one in window.segments:
        begin, end = at + one.start, at + one.end
        # In silence, the model says its last sentence again.
        is_echo = one.text == last and not active.voiced_s(begin, end)
        last = one.text
        if active.is_heard(begin, end) and not is_echo:
            yield segments.Segment(*active.narrowed(begin, end), one.text)


@attrs.frozen
class _Heard:
    tokens: Sequence[int]
    likely: float
    no_speech: float
    words: int
    repetition: float

    @property
    def is_doubted(self) -> bool:
        return self.likely < _LEAST_LIKELY

    def is_loop(self, voiced_s: float) -> bool:
        """Whether the text repeats itself more often than anyone can speak in that time."""
        most = _WORDS_AT_ONCE + voiced_s * _WORDS_PER_VOICED_S
        return self.repetition >= _MOST_REPETITION and self.words > most


@attrs.frozen
class _Listener:
    model: ctranslate2.models.Whisper
    vocabulary: Vocabulary

    @classmethod
    def load(cls) -> "_Listener":
        loaded = _loaded[0]
        ctranslate2.set_random_seed(_SEED)
        model = ctranslate2.models.Whisper(
            "whisper",
            device="cpu",
            compute_type="int8",
            inter_threads=1,
            intra_threads=1,
            files=dict(loaded.files),
        )
        return cls(model, loaded.vocabulary)

    def listen(self, samples: Samples, voiced_s: float) -> segments.Window:
        """Return the sentences of up to 30 seconds; none if they are made up."""
        length_s = len(samples) / RATE
        bands = np.ascontiguousarray(log_mel(samples)[None])
        encoded = self.model.encode(ctranslate2.StorageView.from_array(bands))
        heard = self._hear(encoded, voiced_s)
        is_silence = heard.no_speech > _NO_SPEECH and heard.is_doubted
        if is_silence or heard.is_loop(voiced_s):
            return segments.Window((), WINDOW_S)
        return segments.read(heard.tokens, self.vocabulary, length_s)

    def _hear(self, encoded: ctranslate2.StorageView, voiced_s: float) -> _Heard:
        heard = self._generate(encoded, _TEMPERATURES[0])
        for temperature in _TEMPERATURES[1:]:
            is_good = not heard.is_doubted and not heard.is_loop(voiced_s)
            if is_good or heard.no_speech > _NO_SPEECH:
                break
            heard = self._generate(encoded, temperature)
        return heard

    def _generate(self, encoded: ctranslate2.StorageView, temperature: float) -> _Heard:
        sampling = {"sampling_topk": 0, "sampling_temperature": temperature} if temperature else {}
        made = self.model.generate(
            encoded,
            [self.vocabulary.prompt(names_language=self.model.is_multilingual)],
            beam_size=1,
            max_length=_MOST_TOKENS,
            return_scores=True,
            return_no_speech_prob=True,
            max_initial_timestamp_index=_MOST_FIRST_STAMP,
            **sampling,
        )[0]
        tokens = made.sequences_ids[0]
        text = self.vocabulary.text(tokens)
        plain = text.encode()
        return _Heard(
            tokens=[one for one in tokens if one != self.vocabulary.end],
            likely=made.scores[0],
            no_speech=made.no_speech_prob,
            words=len(text.split()),
            repetition=len(plain) / max(1, len(zlib.compress(plain))),
        )
