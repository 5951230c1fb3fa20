"""Speech, transcripts and clean recordings are sold, by the real models in the sandbox.

One model reads a text aloud, and another one writes it down.
"""

import base64
import io
import json
import struct

import pytest

from tests.conftest import nothing_charged, running

np = pytest.importorskip("numpy")
soundfile = pytest.importorskip("soundfile")

SPEAK, WRITE, CLEAN = (
    f"/api/x402/{slug}" for slug in ("text-to-speech", "speech-to-text", "speech-cleanup")
)
TEXT = "The first boats came home at 6:10, on 3 May 2021. They had caught 250 fish."
PERSONS = ("I am", "You are", "He is", "She is", "We are", "They are")
HEARD = ("came home", "may 2021", "caught 250 fish")


@pytest.fixture
async def gateway(settings, chain):
    async with running(settings) as started:
        started.chain = chain
        yield started


def sent(data: bytes, name: str = "a.flac", **more) -> dict:
    return {"fileBase64": base64.b64encode(data).decode(), "fileName": name, **more}


def recording(samples, rate=24_000, kind="FLAC") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype="PCM_16")
    return file.getvalue()


async def priced(gateway, url: str, body: dict) -> int:
    quote = await (await gateway.client.post(url, json=body)).get_json()
    return int(quote["accepts"][0]["amount"])


async def bought(gateway, payer, url: str, body: dict) -> tuple[dict, bytes]:
    """Pay the price of a 402, and return the task and its file."""
    price = await priced(gateway, url, body)
    answer = await gateway.client.post(url, json=body, headers={"X-PAYMENT": payer.header(price)})
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["status"] == "completed", task
    (output,) = task["result"]["outputs"]
    file = await gateway.client.get(output["url"].removeprefix("http://gateway.test"))
    return task, await file.get_data()


async def refused(gateway, payer, url: str, body: dict) -> str:
    """Return the sentence of a request that is refused before payment."""
    async with nothing_charged(gateway, gateway.chain):
        answer = await gateway.client.post(
            url, json=body, headers={"X-PAYMENT": payer.header(10**6)}
        )
    assert answer.status_code == 400
    return (await answer.get_json())["error"]


async def test_speech_is_read_cleaned_and_written_down_again(gateway, payer):
    task, speech = await bought(gateway, payer, SPEAK, {"prompt": TEXT, "output_format": "flac"})
    (output,) = task["result"]["outputs"]
    assert (output["mimeType"], 5 < output["seconds"] < 9) == ("audio/flac", True)
    spoken, rate = soundfile.read(io.BytesIO(speech), dtype="float32")
    hiss = np.random.default_rng(2).standard_normal(len(spoken)).astype(np.float32)
    noisy = spoken + hiss * np.sqrt((spoken**2).mean() / (hiss**2).mean() / 10)
    _, cleaned = await bought(gateway, payer, CLEAN, sent(recording(noisy, rate)))
    clean, _ = soundfile.read(io.BytesIO(cleaned), dtype="float32")
    assert len(clean) == len(spoken)
    assert decibels(spoken, clean) > decibels(spoken, noisy) + 3
    task, text = await bought(gateway, payer, WRITE, sent(cleaned, output_format="txt"))
    assert task["result"]["text"].encode() == text
    missing = [words for words in HEARD if words not in text.decode().lower()]
    assert missing == [], text


async def test_speech_that_repeats_itself_is_written_down_with_times_that_skip_pauses(
    gateway, payer
):
    drill = " ".join(f"{who} tired." for who in PERSONS) + " "
    _, speech = await bought(gateway, payer, SPEAK, {"prompt": drill * 3, "output_format": "flac"})
    spoken, rate = soundfile.read(io.BytesIO(speech), dtype="float32")
    sound = np.concatenate((np.zeros(3 * rate), spoken, np.zeros(3 * rate)))
    body = sent(recording(sound, rate), output_format="json")
    _, file = await bought(gateway, payer, WRITE, body)
    found = json.loads(file)
    assert 15 <= found["text"].lower().count("tired") <= 20, found
    assert 2.5 < found["segments"][0]["start"] < 3.5
    assert abs(found["segments"][-1]["end"] - 3 - len(spoken) / rate) < 0.6


def decibels(clean, other) -> float:
    """Return how much of a sound is the clean one, whatever its volume (SI-SDR)."""
    scaled = clean * (np.dot(clean, other) / np.dot(clean, clean))
    return 10 * np.log10((scaled**2).sum() / ((other - scaled) ** 2).sum())


async def test_silence_and_noise_are_sold_as_what_they_are(gateway, payer):
    noise = np.random.default_rng(1).standard_normal(48_000) * 0.1
    for samples in (np.zeros(48_000), noise):
        body = sent(recording(samples), output_format="json")
        task, text = await bought(gateway, payer, WRITE, body)
        assert (task["result"]["outputs"][0]["mimeType"]) == "application/json"
        found = json.loads(text)
        assert (found["speech"], found["text"], found["segments"]) == (False, "", [])


async def test_both_channels_stay_in_their_place_and_at_their_rate(gateway, payer):
    left = np.zeros(22_050)
    left[11_000:11_400] = 0.5 * np.sin(np.arange(400) / 8)
    data = recording(np.stack([left, np.zeros(22_050)], 1), 11_025, "WAV")
    _, made = await bought(gateway, payer, CLEAN, sent(data, "a.wav", output_format="wav"))
    clean, rate = soundfile.read(io.BytesIO(made))
    assert (clean.shape, rate) == ((22_050, 2), 11_025)
    assert np.abs(clean[:, 1]).max() < 0.01


async def test_what_cannot_be_made_is_refused_before_payment(gateway, payer):
    good = recording(np.zeros(24_000), kind="WAV")
    two_gb = good[:40] + struct.pack("<I", 2_000_000_000) + good[44:]
    hour = recording(np.zeros(4_000 * 3_600), 4_000)
    half = recording(np.zeros(4_000 * 301), 4_000)
    cases = [
        (SPEAK, {"prompt": "9" * 10_000}, "a number of 10,000 digits"),
        (SPEAK, {"prompt": "שלום עולם"}, "the text contains letters of another script"),
        (WRITE, sent(two_gb, "a.wav"), "is cut off: its header promises more"),
        (WRITE, sent(hour), "1,800 seconds"),
        (CLEAN, sent(good[:30], "a.wav"), "The sound"),
        (CLEAN, sent(hour), "seconds"),
        (CLEAN, sent(half, output_format="wav"), "choose flac"),
    ]
    for url, body, sentence in cases:
        assert sentence in await refused(gateway, payer, url, body)


async def test_prices_follow_characters_and_seconds(gateway):
    assert await priced(gateway, SPEAK, {"prompt": "a " * 999}) == 10_000
    assert await priced(gateway, SPEAK, {"prompt": "Good morning."}) == 5_000
    minutes = sent(recording(np.zeros(4_000 * 400), 4_000))
    assert await priced(gateway, WRITE, minutes) == 400 * 50
    assert await priced(gateway, CLEAN, minutes) == 400 * 50
