"""Sounds are decoded, resampled without a shift, and searched for speech."""

import io

import numpy as np
import pytest
import soundfile

from gateway.sandbox.errors import SandboxRefusal
from gateway_speech.child import activity, sounds
from gateway_speech.child.resampling import Resampler

RATE = 16_000
SEVERAL = [(8_000, 48_000), (44_100, 48_000), (48_000, 16_000), (44_099, 16_000), (16_000, 16_000)]


def tone(rate, hertz=440.0, s=0.5):
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * s)) / rate)).astype(np.float32)


@pytest.mark.parametrize(("source", "target"), SEVERAL)
def test_a_tone_stays_that_tone_at_its_place(source, target):
    resampler = Resampler(source, target)
    parts = [resampler.push(part) for part in np.array_split(tone(source), 7)]
    made = np.concatenate((*parts, resampler.finish()))
    expected = tone(target)
    assert abs(len(made) - len(expected)) <= 1
    middle = slice(target // 20, -target // 20)
    assert np.abs(made[: len(expected)] - expected[: len(made)])[middle].max() < 0.005


def test_a_pitch_above_the_new_rate_is_silent_afterwards():
    resampler = Resampler(48_000, RATE)
    made = np.concatenate((resampler.push(tone(48_000, 11_000.0)), resampler.finish()))
    assert np.abs(made[RATE // 20 : -RATE // 20]).max() < 0.001


def wav(samples, rate=RATE, **form):
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", **form)
    return file.getvalue()


def test_two_channels_become_one():
    data = wav(np.stack([tone(RATE), tone(RATE, 660.0)], 1))
    made = sounds.read_mono(data, RATE, 10) / sounds.FULL_SCALE
    assert np.abs(made - (tone(RATE) + tone(RATE, 660.0)) / 2).max() < 0.001


@pytest.mark.parametrize("opposite", [1.0, 0.9])
def test_channels_that_cancel_each_other_are_not_silent(opposite):
    data = wav(np.stack([-tone(RATE) * opposite, tone(RATE)], 1))
    made = sounds.read_mono(data, RATE, 10) / sounds.FULL_SCALE
    assert np.abs(np.abs(made) - np.abs(tone(RATE))).max() < 0.001


def test_a_channel_beside_a_silent_one_is_halved():
    data = wav(np.stack([tone(RATE), np.zeros(RATE // 2)], 1))
    assert np.abs(sounds.read_mono(data, RATE, 10)).max() < 0.26 * sounds.FULL_SCALE


def test_samples_that_are_no_numbers_are_silent():
    for value in (np.nan, np.inf):
        made = sounds.read_mono(wav(np.full(800, value, np.float32), subtype="FLOAT"), RATE, 10)
        assert len(made) == 800


@pytest.mark.parametrize("data", [b"", b"RIFF" + bytes(999), b"\xff\xe3" * 500, b"fLaC"])
def test_what_is_no_sound_is_refused(data):
    with pytest.raises(SandboxRefusal, match="cannot be decoded"):
        sounds.read_mono(data, RATE, 10)


def test_a_long_recording_is_refused():
    with pytest.raises(SandboxRefusal, match="more than 2 seconds"):
        sounds.read_mono(wav(tone(RATE, s=4.0)), RATE, 2)


@pytest.mark.parametrize("output_format", sounds.FORMS)
def test_each_format_is_written(output_format):
    encoder = sounds.Encoder(output_format, 24_000)
    encoder.write(tone(24_000) * 4)
    data = encoder.finish()
    assert abs(soundfile.info(io.BytesIO(data)).duration - 0.5) < 0.1


def whole(samples):
    return np.rint(np.clip(samples, -1, 1) * sounds.FULL_SCALE).astype(np.int16)


def vowels(s=3.0):
    """Return a buzz at a voice's pitch that rises and falls with syllables."""
    at = np.arange(int(RATE * s)) / RATE
    buzz = sum(np.sin(2 * np.pi * 120 * n * at) / n for n in range(1, 30))
    return 0.1 * buzz * np.clip(np.sin(2 * np.pi * 2 * at), 0, 1)


NOISE = np.random.default_rng(5).standard_normal(3 * RATE)
AT = np.arange(3 * RATE) / RATE
NO_SPEECH = {
    "silence": np.zeros(3 * RATE),
    "hiss": NOISE * 0.1,
    "rumble": np.cumsum(NOISE) * 0.001,
    "a tone": 0.3 * np.sin(2 * np.pi * 440 * AT),
    "hum": 0.2 * np.sign(np.sin(2 * np.pi * 100 * AT)),
    "bursts of noise": NOISE * 0.1 * (np.sin(2 * np.pi * 3 * AT) > 0),
    "almost nothing": np.zeros(10),
}


@pytest.mark.parametrize("sound", NO_SPEECH)
def test_it_finds_no_speech_in(sound):
    assert not activity.find(whole(NO_SPEECH[sound])).has_speech(0, 3)


@pytest.mark.parametrize("level", [1.0, 0.03])
def test_it_finds_voices_also_quiet_ones_and_those_in_noise(level):
    assert activity.find(whole(vowels() * level)).has_speech(0, 3)
    assert activity.find(whole(vowels() + NOISE * 0.02)).has_speech(0, 3)


def test_words_far_from_any_voice_are_not_heard():
    found = activity.find(
        whole(np.concatenate((np.zeros(2 * RATE), vowels(1.0), np.zeros(2 * RATE))))
    )
    assert found.is_heard(2.0, 2.5)
    assert not found.is_heard(0.0, 1.0)
    assert not found.is_heard(4.0, 5.0)


def test_times_are_narrowed_to_the_voice_within_them():
    silence = np.zeros(3 * RATE)
    found = activity.find(whole(np.concatenate((silence, vowels(2.0), silence, vowels(1.0)))))
    begin, end = found.narrowed(0.0, 7.0)
    assert 2.7 < begin < 3.2
    assert 4.6 < end < 5.2
    assert found.narrowed(0.0, 1.0) == (0.0, 1.0)
