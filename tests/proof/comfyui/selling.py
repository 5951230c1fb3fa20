"""A gateway that sells the workflows of a folder, with its queue on a real disk."""

import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
from vendor_site import PlainJob

import gateway_comfyui
from gateway import GenerationRequest
from gateway_comfyui import assembly
from gateway_comfyui.settings import ComfyUISettings
from gateway_testing.fakes.chain import settings_of
from gateway_testing.provider.contract import capture_logs
from gateway_testing.provider.gateway_under_test import GatewayUnderTest, shortened_sleeps
from tests.migrated_databases import put_database

WALLET = "0x" + "b2" * 20
PROMPT = "a lighthouse-keeper's boat"


@attrs.define
class Sales:
    """The gateway, and its log."""

    gateway: GatewayUnderTest
    logs: list[str]

    def registered(self, slug: str):
        return next(one for one in self.gateway.catalog.everything() if one.endpoint.slug == slug)

    def is_on_sale(self, slug: str) -> bool:
        return any(endpoint.slug == slug for endpoint in self.gateway.catalog)

    @property
    def provider(self):
        return self.gateway.sold.upstream.provider

    def choose(self, slug: str, **fields) -> GatewayUnderTest:
        """Buy another offer from now on."""
        self.gateway.slug, self.gateway.fields = slug, fields
        return self.gateway

    async def wait_until(self, what: str, is_so) -> None:
        async for _ in self.gateway.wait_for(what):
            if is_so():
                return

    def files(self, task) -> list[bytes]:
        """The sold files as they are on disk."""
        folder = self.gateway._folder / "outputs"
        return [(folder / one.key).read_bytes() for one in task.result.outputs]


@contextlib.asynccontextmanager
async def selling(
    urls, folder: Path, data: Path, results, *, is_real: bool = False, **values
) -> AsyncIterator[Sales]:
    _make_place(data)
    settings = settings_of(
        {"comfyui_urls": list(urls), "comfyui_workflows": str(folder), **values},
        wallet=WALLET,
        data_dir=data,
    )
    gateway = GatewayUnderTest(
        plugin=gateway_comfyui,
        settings=settings,
        slug="picture",
        fields={"prompt": PROMPT},
        results=results,
        server=None,
    )
    if is_real:
        # A real server remembers the ids of other tests' tasks.
        gateway._bought = random.randrange(10**12)
    with capture_logs() as logs, contextlib.nullcontext() if is_real else shortened_sleeps():
        await gateway.start()
        try:
            yield Sales(gateway, logs.lines)
        finally:
            await gateway.stop()
            gateway.reimporter.restore()


def _make_place(data: Path) -> None:
    data.mkdir(exist_ok=True)
    put_database(data / "gateway.db")


def make_provider(*urls: str, folder: Path, authorization: str = ""):
    """The provider alone, which has read its folder."""
    section = ComfyUISettings(workflows=str(folder), urls=urls, authorization=authorization)
    provider = assembly.make_provider(section)
    provider.read_folder()
    return provider


BOAT = GenerationRequest(prompt=PROMPT, aspect_ratio="1:1", resolution="1K", output_format="png")


def job_of(provider, slug="picture", **fields) -> PlainJob:
    return PlainJob(provider.workflows[slug].endpoint(), **fields)
