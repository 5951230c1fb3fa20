"""A plugin sells sounds by the second, with the kinds of gateway_media."""

import base64

import pytest

from gateway import (
    SECOND,
    Capability,
    Choice,
    Endpoint,
    Output,
    Prompt,
    Result,
    UnitPrice,
    hookimpl,
    usdc,
)
from gateway_media import SOUND, SOUND_FILE
from tests.conftest import nothing_charged, running
from tests.plugins.gateway_media.made_sounds import chunk, encoded, opus, wav, wav_form
from tests.plugins.gateway_media.made_videos import movie

DENOISING = Capability(
    name="noise-removal",
    prompt=Prompt(use="absent", cheapest=""),
    files=(SOUND_FILE,),
    output_formats=("wav", "mp3"),
    results=(SOUND,),
    units=(SECOND,),
)
URL = "/api/x402/denoise"
# 0.001 USDC a second, and 0.01 at least.
LEAST, TWELVE_S = 10_000, 12_000
TWELVE = wav(wav_form(), chunk(b"data", b"\xc0\x40" * 48_000))


class DenoisingPlugin:
    """Puts the scripted provider on sale for sounds."""

    __name__ = "denoising-plugin"

    def __init__(self, provider) -> None:
        self.provider = provider

    @hookimpl
    def register_capabilities(self, register) -> None:
        register(DENOISING)

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        endpoint = Endpoint(
            slug="denoise",
            title="Noise removal",
            description="Removes noise.",
            model="denoise-1",
            provider="scripted",
            capability=DENOISING.name,
            price_units=usdc("0.01"),
            unit_price=UnitPrice(unit=SECOND, price_units=usdc("0.001"), most=600),
            required_fields=("fileBase64", "fileName"),
            file_extensions=SOUND_FILE.endings,
            output_format=Choice(values=("wav", "mp3"), default="wav"),
        )
        register(endpoint, self.provider)


@pytest.fixture
async def gateway(settings, provider, chain):
    async with running(settings, provider, more=[DenoisingPlugin(provider)]) as started:
        started.chain = chain
        yield started


def sent(data: bytes, ending: str = ".wav", **more) -> dict:
    return {"fileBase64": base64.b64encode(data).decode(), "fileName": f"a{ending}", **more}


def sounding(data: bytes) -> Result:
    return Result(outputs=(Output(data=data, media_type="audio/wav"),))


async def test_a_sound_is_bought_by_its_seconds_and_a_sound_is_served(gateway, provider, payer):
    odd = TWELVE + chunk(b"data", bytes(2), size=0)
    body = sent(TWELVE + b"trailing")
    answer = await gateway.client.post(URL, json=body)
    assert (await answer.get_json())["accepts"][0]["amount"] == str(TWELVE_S)
    provider.script = [sounding(TWELVE)]
    header = {"X-PAYMENT": payer.header(TWELVE_S)}
    answer = await gateway.client.post(URL, json=body, headers=header)
    task = await gateway.wait((await answer.get_json())["taskId"])
    (output,) = task["result"]["outputs"]
    assert (output["mimeType"], output["seconds"]) == ("audio/wav", 12.0)
    file = await gateway.client.get(output["url"].removeprefix("http://gateway.test"))
    assert await file.get_data() == TWELVE
    # Only the measured samples.
    assert provider.requests[0].attachment.data == TWELVE
    answer = await gateway.client.post(URL, json=sent(odd))
    assert answer.status_code == 400


async def test_each_format_is_measured_in_the_sandbox(gateway):
    files = {
        ".wav": TWELVE,
        ".flac": encoded(12, "FLAC", "PCM_16"),
        ".mp3": encoded(12, "MP3", "MPEG_LAYER_III"),
        ".ogg": encoded(12, "OGG", "VORBIS"),
        ".opus": opus(600),
        ".m4a": movie("ipod", sounds=("aac",), seconds=12),
        ".webm": movie("webm", sounds=("libopus",), seconds=12),
    }
    assert files.keys() == set(SOUND_FILE.endings)
    for ending, data in files.items():
        answer = await gateway.client.post(URL, json=sent(data, ending))
        amount = int((await answer.get_json())["accepts"][0]["amount"])
        # An MP3 has whole frames at the end, and Matroska's times are rounded.
        most = TWELVE_S + 1000 * (ending in (".mp3", ".webm"))
        assert TWELVE_S <= amount <= most, ending


BAD = [
    (TWELVE[:-10], "The sound is cut off"),
    (b"\x89PNG\r\n\x1a\n" + bytes(90), "The sound is no WAV."),
    (wav(wav_form(), chunk(b"data", bytes(80))), "0.1 to 1,800 are allowed"),
    (wav(wav_form(4000), chunk(b"data", bytes(4000 * 601))), "601 seconds"),
]


async def test_a_bad_file_is_refused_before_payment(gateway, payer):
    header = {"X-PAYMENT": payer.header(LEAST)}
    async with nothing_charged(gateway, gateway.chain):
        for data, reason in BAD:
            answer = await gateway.client.post(URL, json=sent(data), headers=header)
            error = await answer.get_json()
            assert (answer.status_code, error["code"]) == (400, "VALIDATION_ERROR")
            assert reason in error["error"]


async def test_a_result_without_a_whole_sound_is_a_refund_due(gateway, provider, payer):
    for data in (b"no credit", TWELVE[:-10]):
        provider.script = [sounding(data)]
        header = {"X-PAYMENT": payer.header(TWELVE_S)}
        answer = await gateway.client.post(URL, json=sent(TWELVE), headers=header)
        task = await gateway.wait((await answer.get_json())["taskId"])
        assert (task["status"], task["details"]) == ("failed", "provider_error")
        assert task["refund"]["amount"] == 0.012
