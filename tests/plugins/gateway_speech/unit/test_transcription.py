"""Voiced sound of which the model understands nothing is marked, and never silence."""

import numpy as np
import pytest

from gateway_speech.child import segments, transcription
from tests.plugins.gateway_speech.unit.test_sounds import RATE, vowels, wav


class Listener:
    """Understands the sentences that it is made with, in the first window."""

    def __init__(self, *sentences):
        self.windows = [segments.Window(sentences, 30.0)]

    def listen(self, samples, voiced_s):
        return self.windows.pop() if self.windows else segments.Window((), 30.0)


@pytest.fixture
def transcribed(monkeypatch):
    def run(listener, samples):
        monkeypatch.setattr(transcription._Listener, "load", lambda: listener)
        return transcription.transcribe("txt", wav(samples)).decode().strip()

    return run


def test_voice_without_any_word_is_unclear_and_silence_is_no_speech(transcribed):
    assert transcribed(Listener(), vowels()) == "[unclear]"
    assert transcribed(Listener(), np.zeros(3 * RATE)) == "[no speech found]"


def test_only_the_part_without_words_is_unclear(transcribed):
    listener = Listener(segments.Segment(0.0, 3.0, "Hello."))
    sound = np.concatenate((vowels(), np.zeros(30 * RATE), vowels()))
    assert transcribed(listener, sound) == "Hello. [unclear]"


def test_a_sentence_that_is_said_again_in_silence_is_left_out(transcribed):
    said = [segments.Segment(at, at + 1.0, "Hello.") for at in (0.0, 1.5, 3.1)]
    sound = np.concatenate((vowels(), np.zeros(3 * RATE)))
    assert transcribed(Listener(*said), sound) == "Hello. Hello."


@pytest.mark.parametrize(("voiced_s", "is_loop"), [(10.0, False), (1.0, True)])
def test_a_repetition_is_made_up_only_if_the_voice_has_no_room_for_it(voiced_s, is_loop):
    heard = transcription._Heard([], likely=-0.2, no_speech=0.0, words=60, repetition=5.0)
    assert heard.is_loop(voiced_s) is is_loop
