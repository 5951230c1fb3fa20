"""Fixtures that all share: an embedded chain, a gateway on it, and people with wallets.

Slow imports (the EVM, web3, the app) are deferred: tests/unit needs none of them.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest
import structlog

from gateway import (
    Choice,
    Endpoint,
    GenerationRequest,
    InvalidInput,
    Job,
    Output,
    Result,
    Settings,
    Traits,
    hookimpl,
    usdc,
)
from tests import hidden_models
from tests.authorizations import header_of, payload_of
from tests.migrated_databases import put_database
from tests.patience import until

if TYPE_CHECKING:
    from gateway.running.gateway import Gateway
    from gateway_demo.chain import PlayChain
    from gateway_demo.token import Authorization

WALLET = "0x7Cf1A6bD3Fb7A9c1A5e2A3F9c2dB2f3A4b5C6d7E".lower()
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

hidden_models.hide()

pytest_plugins = ["tests.databases", "tests.distribution", "tests.quick_starts", "tests.short_form"]

# The timeout of a failing test; a passing one does not wait that long.
_PATIENCE_S = 240  # seconds


class Clock:
    """Wall time that a test may advance."""

    def __init__(self) -> None:
        self.offset_s = 0.0
        self.frozen_at: float | None = None

    def __call__(self) -> float:
        import time

        return (self.frozen_at if self.frozen_at is not None else time.time()) + self.offset_s


class ScriptedProvider:
    """A provider whose next results a test sets; by default it draws one pixel."""

    name = "scripted"
    traits = Traits(idempotent_submit=True)  # it may be asked again, as after a restart

    def __init__(self) -> None:
        self.script: list = []
        self.requests: list[GenerationRequest] = []
        self.refuse: str | None = None

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        if self.refuse:
            raise InvalidInput(self.refuse)

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        self.requests.append(request)
        step = self.script.pop(0) if self.script else None
        if callable(step):
            step = await step(request, job)
        if isinstance(step, BaseException):
            raise step
        if step is not None:
            return step
        if request.attachment is not None:
            return Result(text=f"# {request.attachment.name}\n")
        return Result(outputs=(Output(data=PNG, media_type="image/png", width=1, height=1),))


class ScriptedPlugin:
    """Puts the scripted provider on sale: a picture at 0.02, a document at 0.01."""

    __name__ = "scripted-plugin"

    def __init__(self, provider: ScriptedProvider) -> None:
        self.provider = provider

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        picture = Endpoint(
            slug="picture",
            title="A picture",
            description="One pixel.",
            model="pixel-1",
            provider="scripted",
            capability="text-to-image",
            price_units=usdc("0.02"),
            aspect_ratio=Choice(values=("1:1", "16:9"), default="1:1"),
            output_format=Choice(values=("png", "jpg", "webp"), default="png"),
            resolution=Choice(values=("1K", "2K"), default="1K"),
            least_pixels={"1K": 1, "2K": 1},
        )
        register(picture, self.provider)
        register(
            attrs.evolve(
                picture,
                slug="paper",
                capability="document-parsing",
                price_units=usdc("0.01"),
                required_fields=("fileBase64", "fileName"),
                aspect_ratio=Choice(),
                output_format=Choice(),
                resolution=Choice(),
                file_extensions=(".pdf", ".txt"),
            ),
            self.provider,
        )


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GATEWAY_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _usual_recursion_limit() -> None:
    """Undo py_ecc, which web3 imports: with its limit of 100,000 deep JSON kills the process."""
    sys.setrecursionlimit(3_000)


@pytest.fixture(autouse=True)
def _quiet_logs() -> Iterator[None]:
    structlog.configure(processors=[_drop])
    yield
    structlog.reset_defaults()


def _drop(logger, method, event):
    raise structlog.DropEvent


def new_account():
    """Return an account with a new key."""
    from eth_account import Account

    return Account.create()


@pytest.fixture
def chain() -> Iterator[PlayChain]:
    from gateway_demo.chain import PlayChain

    with PlayChain() as running:
        yield running


@pytest.fixture(params=["hypercorn", "uvicorn"])
def http_server(request) -> str:
    """Run a test of the HTTP server on each of them (GATEWAY_SERVER)."""
    return request.param


# A test whose outcome does not depend on the HTTP server runs on one of them.
one_server = pytest.mark.parametrize("http_server", ["hypercorn"], indirect=True)


@pytest.fixture
def gas_key():
    return new_account()


@pytest.fixture
def settings(chain: PlayChain, gas_key, tmp_path: Path) -> Settings:
    chain.fund(gas_key.address, eth_wei=10**18, usdc_units=0)
    return Settings(
        base_url="http://gateway.test",
        wallet=WALLET,
        rpc_urls=(chain.rpc_url,),
        rpc_timeout=30.0,  # a test that wants it short says so
        data_dir=tmp_path / "data",
        settlement_key=gas_key.key.hex(),
        limit_x402="1000/60s",
        limit_direct="1000/60s",
        limit_task="1000/1s",
        tx_patience=1.0,
        min_free_disk_mb=0,
        plugins_disabled=tuple(filter(None, os.environ.get("GATEWAY_TEST_WITHOUT", "").split(","))),
        # By default it is due from eight to ten in the morning.
        plugin_values={"admin_password": "correct horse", "digest_at": "off"},
    )


@pytest.fixture
def provider() -> ScriptedProvider:
    return ScriptedProvider()


@pytest.fixture
def clock() -> Clock:
    return Clock()


# Without a repr, because a gateway's takes 15 ms, twice a test: asyncio's runner calls
# `signal.getsignal`, which formats the yielded value into an error that is never read.
@attrs.define(repr=False)
class Running:
    """A gateway under test: its client, its parts, and its settings."""

    app: object
    client: object
    services: Gateway
    chain: PlayChain | None = None
    # The operator's, if the test logs in.
    headers: dict[str, str] | None = None

    async def silence_background(self) -> None:
        """Let only the test call the chain from now on, after the checks that are due."""
        await self.services.lifecycle.warmed.wait()
        # Another check would leave the gateway's own in progress.
        checks = [task for task in asyncio.all_tasks() if task.get_name() == "wallet"]
        await asyncio.gather(*checks)
        await self.services.settlements._periodic.stop()
        await self.services.settlements.obstacles.stop()

    async def wait(self, task_id: str) -> dict:
        """Return the task once it is done, even on a slow machine."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                answer = await self.client.get(f"/api/task/{task_id}?wait=20")
                task = await answer.get_json()
                if task.get("done", True):
                    return task


@contextlib.asynccontextmanager
async def running(settings: Settings, provider=None, more=(), **options) -> AsyncIterator[Running]:
    from quart.testing import TestApp

    from gateway.app import create_app
    from gateway.tasks import TaskTiming
    from gateway.web.front.current import EXTENSION
    from tests.databases import TEST_DATABASE
    from tests.waits import set_waits

    plugins = [*([ScriptedPlugin(provider)] if provider is not None else []), *more]
    if TEST_DATABASE == "sqlite":
        put_database(settings.data_dir / "gateway.db")
    app = create_app(settings, plugins=plugins, **options)
    # `app.test_app()` gives a start and a stop six seconds each.
    async with TestApp(app, startup_timeout=_PATIENCE_S, shutdown_timeout=_PATIENCE_S):
        services = app.extensions[EXTENSION]
        services.workers.resources.timing = TaskTiming(backoff_s=0.02)
        set_waits(services)
        services.lifecycle.answered.set()
        yield Running(app, app.test_client(), services)


@pytest.fixture
async def gateway(settings, provider, chain, clock) -> AsyncIterator[Running]:
    async with running(settings, provider, now=clock) as started:
        started.chain = chain
        await until(partial(_has_cutoff, started))
        yield started


async def _has_cutoff(started: Running) -> bool:
    """Find the cutoff block. It is stored once a block is younger than the database."""
    await started.services.payments.cutoff_block()
    return await started.services.store.known_meta("floor_block") is not None


@attrs.define
class Payer:
    """A person with a funded wallet, who pays in both flows."""

    chain: PlayChain
    account: object = attrs.field(factory=new_account)

    def __attrs_post_init__(self) -> None:
        self.chain.fund(self.account.address, eth_wei=10**18, usdc_units=100_000_000)

    def transfer(self, units: int, to: str = WALLET) -> str:
        return self.chain.transfer_usdc(self.account.key, to, units)

    def authorization(self, units: int = 20_000, **changes) -> Authorization:
        from gateway_demo.token import Authorization

        signed = Authorization(sender=self.account.address, to=WALLET, units=units)
        return attrs.evolve(signed, **changes)

    def header(self, units: int = 20_000, *, version: int = 1, **changes) -> str:
        """Return an X-PAYMENT header."""
        return header_of(self.payload(units, version=version, **changes))

    def payload(self, units: int = 20_000, *, version: int = 1, **changes) -> dict:
        signed = self.authorization(units, **changes)
        signature = signed.sign(self.account.key, self.chain.chain_id, self.chain.usdc)
        return payload_of(signed, signature, version=version)


@pytest.fixture
def payer(chain: PlayChain) -> Payer:
    return Payer(chain)


@contextlib.asynccontextmanager
async def nothing_charged(gateway: Running, chain: PlayChain) -> AsyncIterator[None]:
    """Check that nothing is stored, sent or transferred during the block."""
    before = await _money(gateway, chain)
    yield
    assert await _money(gateway, chain) == before


async def _money(gateway: Running, chain: PlayChain) -> tuple:
    from eth_account import Account

    key = str(gateway.services.settings.settlement_key)
    sender = Account.from_key(key).address
    sent = chain.rpc.result("eth_getTransactionCount", sender, "pending")
    counts = await gateway.services.store.counts()
    rows = {kind: sum(states.values()) for kind, states in counts.items()}
    return rows, sent, chain.usdc_balance(WALLET)


async def operators_rows(gateway) -> tuple[int, dict[str, dict]]:
    """Return the status and the rows of `/admin/ready`, by name."""
    answer = await gateway.client.get("/admin/ready")
    if answer.status_code == 401:
        await gateway.client.post("/admin/login", json={"password": "correct horse"})
        answer = await gateway.client.get("/admin/ready")
    return answer.status_code, {row["name"]: row for row in (await answer.get_json())["checks"]}


async def buy(gateway, header, *, url="/api/x402/picture", name="X-PAYMENT", **fields):
    """Request a picture by x402, optionally with a payment header."""
    headers = {name: header} if header else {}
    body = {"prompt": "a boat"} | fields
    return await gateway.client.post(url, json=body, headers=headers)
