"""A plugin sells videos by the second, with the kinds of gateway_media."""

import base64

import pytest

from gateway import (
    SECOND,
    Capability,
    Endpoint,
    Output,
    Prompt,
    Result,
    UnitPrice,
    hookimpl,
    usdc,
)
from gateway_media import VIDEO, VIDEO_FILE
from tests.conftest import nothing_charged, running
from tests.plugins.gateway_media.made_videos import movie

UPSCALING = Capability(
    name="video-upscaling",
    prompt=Prompt(use="absent", cheapest=""),
    files=(VIDEO_FILE,),
    output_formats=("mp4",),
    results=(VIDEO,),
    units=(SECOND,),
)
URL = "/api/x402/upscale"
# 0.01 USDC a second.
THREE_S = 30_000
THREE = movie("mp4", frames=30)


class UpscalingPlugin:
    """Puts the scripted provider on sale for videos."""

    __name__ = "upscaling-plugin"

    def __init__(self, provider) -> None:
        self.provider = provider

    @hookimpl
    def register_capabilities(self, register) -> None:
        register(UPSCALING)

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        endpoint = Endpoint(
            slug="upscale",
            title="Upscaling",
            description="Makes a video larger.",
            model="upscale-1",
            provider="scripted",
            capability=UPSCALING.name,
            price_units=usdc("0.01"),
            unit_price=UnitPrice(unit=SECOND, price_units=usdc("0.01"), most=600),
            required_fields=("fileBase64", "fileName"),
            file_extensions=VIDEO_FILE.endings,
        )
        register(endpoint, self.provider)


@pytest.fixture
async def gateway(settings, provider, chain):
    async with running(settings, provider, more=[UpscalingPlugin(provider)]) as started:
        started.chain = chain
        yield started


def sent(data: bytes, name: str = "a.mp4") -> dict:
    return {"fileBase64": base64.b64encode(data).decode(), "fileName": name}


async def bought(gateway, payer, provider, data: bytes) -> dict:
    output = Output(data=data, media_type="video/mp4")
    provider.script = [Result(outputs=(output,))]
    header = {"X-PAYMENT": payer.header(THREE_S)}
    answer = await gateway.client.post(URL, json=sent(THREE), headers=header)
    return await gateway.wait((await answer.get_json())["taskId"])


async def test_a_video_is_bought_by_its_seconds_and_a_video_is_served(gateway, provider, payer):
    for data, name in ((THREE, "a.mp4"), (movie("webm", frames=30), "a.webm")):
        answer = await gateway.client.post(URL, json=sent(data, name))
        assert (await answer.get_json())["accepts"][0]["amount"] == str(THREE_S)
    task = await bought(gateway, payer, provider, THREE)
    (output,) = task["result"]["outputs"]
    facts = output["mimeType"], output["seconds"], output["width"], output["height"]
    assert facts == ("video/mp4", 3.0, 64, 64)
    path = output["url"].removeprefix("http://gateway.test")
    file = await gateway.client.get(path, headers={"Range": "bytes=4-7"})
    assert (file.status_code, await file.get_data()) == (206, b"ftyp")
    page = await (await gateway.client.get("/play/upscale")).get_data(as_text=True)
    assert 'accept=".mp4,.webm"' in page


BAD = [
    (THREE[:-10], "The video is cut off"),
    (movie("mp4", sounds=("aac",)), "The video has 0 video and 1 sound tracks."),
    (movie("mp4", frames=10, movflags="frag_keyframe+empty_moov"), "The video is fragmented"),
]


async def test_a_bad_file_is_refused_before_payment(gateway, payer):
    header = {"X-PAYMENT": payer.header(THREE_S)}
    async with nothing_charged(gateway, gateway.chain):
        for data, reason in BAD:
            answer = await gateway.client.post(URL, json=sent(data), headers=header)
            error = await answer.get_json()
            assert (answer.status_code, error["code"]) == (400, "VALIDATION_ERROR")
            assert reason in error["error"]


async def test_a_result_without_a_video_track_is_a_refund_due(gateway, provider, payer):
    task = await bought(gateway, payer, provider, movie("mp4", sounds=("aac",)))
    assert (task["status"], task["details"]) == ("failed", "provider_error")
    assert task["refund"]["amount"] == 0.03
