"""`gateway check`: what is wrong before money is involved, a row each."""

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import structlog

from gateway.chain.client import Web3Chain
from gateway.chain.keys import address_of, check_plain_keys, load_key
from gateway.chain.wallet_check import contract_problem
from gateway.contracts import PluginContext, Probing
from gateway.contracts.outputs import OutputStoreUnavailable
from gateway.domain.eip3009 import BALANCE_OF, IS_BLACKLISTED, PAUSED, word
from gateway.errors import GatewayError, SettingsError
from gateway.outputs import open_outputs
from gateway.payments.obstacles import clock_problem, is_true
from gateway.plugins.catalog import Catalog
from gateway.plugins.health import problem_of
from gateway.plugins.manager import PluginManager
from gateway.plugins.upstream import Upstream
from gateway.sandbox import Sandbox, SandboxEnded, SandboxLost
from gateway.settings import Settings, load_settings
from gateway.store import SqliteStore
from gateway.store.data_folder import enter_data

_CONFINED = "files are read by processes that can make no system call but those of computing"
_LIMITED_ONLY = (
    "files are read by processes with limits alone: this system has no seccomp filter for them; "
    "Linux on x86-64 or aarch64 has"
)
_STALE_S = 60  # a head older than this is of an endpoint that has stopped


@attrs.frozen(kw_only=True)
class Row:
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str

    def as_dict(self) -> dict[str, Any]:
        """Return the row for `--json`."""
        return attrs.asdict(self)


def catalog_of_settings() -> tuple[Catalog, PluginManager]:
    """Return what is on sale under the current settings, and who registered it."""
    settings = load_settings()
    _silence_logs()
    manager = PluginManager()
    return manager.catalog(settings), manager


def _silence_logs() -> None:
    """Log nothing: what a plugin's failure would say is in the rows, and JSON stays JSON."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def run_checks() -> list[Row]:
    """Look at everything; a mistake in the settings is the only row where it stops all others."""
    _silence_logs()
    try:
        settings = load_settings()
        enter_data(settings)
    except SettingsError as error:
        return [Row(name="settings", ok=False, found=str(error))]
    return [
        Row(name="settings", ok=True, found=_summary(settings)),
        *asyncio.run(_checks(settings)),
    ]


def _summary(settings: Settings) -> str:
    exposed = "" if settings.is_https else " (not https: for tests only)"
    return f"{settings.base_url}{exposed}, {settings.network}, {settings.settlement} settlement"


async def _checks(settings: Settings) -> list[Row]:
    chain = Web3Chain(settings)
    try:
        return [
            await _row("disk", lambda: _disk(settings)),
            await _row("database", lambda: _database(settings)),
            await _row("outputs", open_outputs(settings, "gateway check").probe),
            await _row("plugins", lambda: _plugins(settings)),
            await _row("sandbox", _sandbox),
            *await _providers(settings),
            *[
                await _row(f"rpc {place}", _rpc(settings, url))
                for place, url in enumerate(settings.rpc_urls, 1)
            ],
            await _row("clock", lambda: _clock(chain)),
            await _row("token", lambda: _token(settings, chain)),
            await _row("wallet", lambda: _wallet(settings, chain)),
            await _row("settlement", lambda: _settlement(settings, chain)),
            await _row("refunds", lambda: _refunds(settings, chain)),
        ]
    finally:
        await chain.close()


async def _row(name: str, look: Callable[[], Awaitable[str]]) -> Row:
    try:
        return Row(name=name, ok=True, found=await look())
    except (GatewayError, SettingsError, OutputStoreUnavailable, ValueError, OSError) as error:
        details = getattr(error, "details", None)
        return Row(name=name, ok=False, found=f"{error} ({details})" if details else str(error))


async def _disk(settings: Settings) -> str:
    folder = _existing(settings.data_dir)
    free_mb = shutil.disk_usage(folder).free / 10**6
    if free_mb < settings.min_free_disk_mb:
        raise ValueError(f"{free_mb:.0f} MB free in {folder}, {settings.min_free_disk_mb} needed")
    return f"{free_mb:,.0f} MB free"


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())


async def _database(settings: Settings) -> str:
    async with SqliteStore(settings.data_dir / "gateway.db") as store:
        await store.ping()
        payments = (await store.counts())["payments"]
    return f"writable, {sum(payments.values())} payments"


async def _plugins(settings: Settings) -> str:
    manager = PluginManager()
    catalog = manager.catalog(settings)
    left_out = [plugin.name for plugin in manager.loaded if plugin.problem]
    if left_out:
        raise ValueError(f"left out: {', '.join(left_out)}; `gateway plugins` says why")
    if not len(catalog):
        raise ValueError("nothing is on sale; `gateway endpoints` lists what could be")
    return f"{len(catalog)} endpoints on sale"


async def _sandbox() -> str:
    """Say how a child that reads a stranger's file is confined here; one is started to tell."""
    sandbox = Sandbox(function="gateway.sandbox.child.probe:tell")
    try:
        told = await sandbox.call()
    except (SandboxEnded, SandboxLost) as error:
        raise ValueError(f"no file can be read: {error}") from None
    finally:
        sandbox.close()
    return _CONFINED if told == b"filtered" else _LIMITED_ONLY


async def _providers(settings: Settings) -> list[Row]:
    """Return a row for each provider on sale, all asked at the same time."""
    try:
        catalog = PluginManager().catalog(settings)
    except SettingsError:
        return []  # the row above says it
    try:
        return await asyncio.gather(*(_provider(upstream) for upstream in catalog.on_sale()))
    finally:
        await catalog.close()


async def _provider(upstream: Upstream) -> Row:
    problem = await problem_of(upstream)
    found = "answers" if isinstance(upstream.provider, Probing) else "has no health to ask for"
    name = f"provider {upstream.provider.name}"
    return Row(name=name, ok=problem is None, found=problem or found)


def _rpc(settings: Settings, url: str) -> Callable[[], Awaitable[str]]:
    async def look() -> str:
        chain = Web3Chain(attrs.evolve(settings, rpc_urls=(url,)))
        try:
            began = time.perf_counter()
            head = await chain.head()
            ms = (time.perf_counter() - began) * 1000
        finally:
            await chain.close()
        age_s = time.time() - head.timestamp
        if age_s > _STALE_S:
            raise ValueError(f"its newest block is {age_s:.0f} s old")
        known = f"chain {settings.chain.chain_id}, USDC's domain is right"
        return f"{known}, block {head.number}, {ms:.0f} ms"

    return look


async def _clock(chain: Web3Chain) -> str:
    ahead_s = time.time() - (await chain.newest_head()).timestamp
    if problem := clock_problem(ahead_s):
        raise ValueError(problem)
    return f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s >= 0 else 'behind'} the newest block"


async def _token(settings: Settings, chain: Web3Chain) -> str:
    if await is_true(chain, PAUSED):
        raise ValueError("USDC is paused by its issuer: nobody can pay now")
    if await is_true(chain, IS_BLACKLISTED + word(settings.wallet)):
        raise ValueError(f"USDC blacklists {settings.wallet}: nobody can pay it")
    return "USDC is not paused and does not blacklist the wallet"


async def _wallet(settings: Settings, chain: Web3Chain) -> str:
    check_plain_keys(settings)
    problem = await contract_problem(settings, chain)
    if problem is not None:
        raise SettingsError(problem)
    balance = await chain.call_uint(BALANCE_OF + word(settings.wallet))
    return f"{settings.wallet} holds {balance / 10**6:,.2f} USDC"


async def _settlement(settings: Settings, chain: Web3Chain) -> str:
    store = SqliteStore(settings.data_dir / "gateway.db")  # never opened: checking sends nothing
    context = PluginContext(settings=settings, chain=chain, journal=store, now=time.time)
    settler = PluginManager().settler(context)
    await settler.check_ready()
    return getattr(settler, "about", f"{settings.settlement} is ready")


async def _refunds(settings: Settings, chain: Web3Chain) -> str:
    secret = load_key(settings, "refund")
    if secret is None:
        if settings.refunds == "automatic":
            raise ValueError("automatic, but GATEWAY_REFUND_KEY is not set")
        return "no refund key: `gateway refunds list` shows what is owed"
    address = address_of(secret)
    balance = await chain.call_uint(BALANCE_OF + word(address))
    wei = await chain.gas_balance(address)
    if not wei:
        raise ValueError(f"{address} holds no ETH for gas")
    held = f"{address} holds {balance / 10**6:,.2f} USDC and {wei / 10**18:.6f} ETH"
    return f"{settings.refunds}, {held}"
