"""The command `gateway check`: verifies everything that sales depend on, one row per check."""

import asyncio
import contextlib
import sys
import time
from functools import partial
from pathlib import Path

import attrs
import click

from gateway.catalog.functions import DeclaredFunctions
from gateway.catalog.health import problem_of
from gateway.catalog.upstream import Upstream
from gateway.chain.client import Web3Chain
from gateway.chain.keys import (
    address_of,
    check_plain_keys,
    known_problem,
    load_key,
    load_settlement_keys,
)
from gateway.chain.known_keys import refuse_known_wallet
from gateway.cli.terminal import json_option, one_sentence, wide_option
from gateway.contracts import PluginContext, Probing, Settler
from gateway.domain.eip3009 import BALANCE_OF, IS_BLACKLISTED, PAUSED, word
from gateway.errors import SettingsError
from gateway.outputs import open_outputs
from gateway.payments.obstacles import clock_problem, contract_problem, is_true
from gateway.plugins.installed import find_sections
from gateway.plugins.manager import PluginManager
from gateway.plugins.unknown_settings import find_ignored
from gateway.running.rate_limits import make_limits
from gateway.settings import Settings, check_openers, load_settings, variable
from gateway.settings.page_values import make_readable
from gateway.store.data_folder import enter_data, open_store
from gateway.store.disk import read_disk
from gateway.store.page_settings import with_page_settings
from gateway.web.server.serve import run_of
from gateway_check import sandboxes
from gateway_check.catalog import silence_logs
from gateway_check.database import existing_parent, find_checks, read_database
from gateway_check.listing import check_listed, find_listing, listing_option, validator_option
from gateway_check.live import evidence_option, live_option, run_live, yes_option
from gateway_check.pace import check_pace
from gateway_check.prices import check_models, check_prices
from gateway_check.rows import Result, Row, make_row
from gateway_check.rpc import check_rpc
from gateway_operator.alarms.channels import make_carriers
from gateway_operator.checklist import make_checklist
from gateway_operator.desk.wording import counted
from gateway_operator.tables import print_rows


@click.command()
@json_option
@wide_option
@listing_option
@validator_option
@live_option
@yes_option
@evidence_option
@one_sentence
def check(
    *,
    as_json: bool,
    wide: bool,
    listing: bool,
    validator: str | None,
    live: str | None,
    is_agreed: bool,
    evidence: Path,
) -> None:
    """Check settings, chain, wallet, gas, plugins and disk.

    A note is something to do before you sell. Exits with 1 if a check is wrong.
    """
    if live is not None:
        silence_logs()
        made = run_live(with_page_settings(load_settings()), live, evidence, is_agreed=is_agreed)
        print_rows([one.as_dict() for one in made], as_json=as_json, wide=wide)
        sys.exit(0 if all(one.ok for one in made) else 1)
    rows = run_checks(listing=listing or validator is not None, validator=validator)
    shown = [{"check": row.name, "result": row.result, "details": row.found} for row in rows]
    print_rows([row.as_dict() for row in rows] if as_json else shown, as_json=as_json, wide=wide)
    sys.exit(0 if all(row.ok for row in rows) else 1)


def run_checks(*, listing: bool = False, validator: str | None = None) -> list[Row]:
    """Run every check. If the settings are invalid, that is the only row.

    `listing` adds a row per endpoint; `validator` is the URL of a Bazaar's validator.
    """
    silence_logs()
    try:
        settings = load_settings()
        run_of(settings)
        check_openers(settings)
        find_sections(settings)
        refuse_known_wallet(settings)
        enter_data(settings)
    except SettingsError as error:
        return [Row(name="settings", result="wrong", found=str(error))]
    settings, unread = _read_page(settings)
    rows = asyncio.run(_check_all(settings))
    if listing:
        rows += asyncio.run(_check_listings(settings, validator))
    result: Result = "note" if settings.page_unread or unread else "ok"
    return [Row(name="settings", result=result, found=_summarize(settings) + unread), *rows]


def _read_page(settings: Settings) -> tuple[Settings, str]:
    """Return the settings as the next start has them, and a clause if the page's are not read."""
    try:
        settings = with_page_settings(settings)
    except SettingsError as error:
        return settings, f"; without what is set on the page: {error}"
    # Other rows report mistakes that are not of the page.
    with contextlib.suppress(SettingsError):
        manager = PluginManager(disabled=settings.plugins_disabled)
        settings, _ = make_readable(settings, manager.catalog)
    return settings, ""


def _summarize(settings: Settings) -> str:
    exposed = "" if settings.is_https else " (not https: for tests only)"
    unread = ", ".join(map(variable, sorted(settings.page_unread)))
    without = f"; without effect, although set on the page: {unread}" if unread else ""
    return (
        f"{settings.base_url}{exposed}, {settings.network}, {settings.settlement} settlement"
        f"{without}"
    )


async def _check_all(settings: Settings) -> list[Row]:
    chain = Web3Chain(settings)
    try:
        return [
            await make_row("disk", lambda: _check_disk(settings)),
            *[await make_row(*one) for one in await find_checks(settings)],
            await make_row("outputs", lambda: _check_outputs(settings)),
            *await _check_by_plugins(settings),
            *await _check_limits(settings),
            await make_row("plugins", lambda: _check_plugins(settings, chain)),
            await make_row("prices", lambda: check_prices(settings)),
            await make_row("models", lambda: check_models(settings)),
            await make_row("sandbox", sandboxes.check_confinement),
            await make_row("memory", lambda: sandboxes.check_memory(settings)),
            *await _check_providers(settings),
            *[
                await make_row(f"rpc {place}", partial(_check_rpc, settings, url))
                for place, url in enumerate(settings.rpc_urls, 1)
            ],
            await make_row("clock", lambda: _check_clock(chain)),
            await make_row("pace", lambda: check_pace(settings, chain)),
            await make_row("token", lambda: _check_token(settings, chain)),
            await make_row("wallet", lambda: _check_wallet(settings, chain)),
            await make_row("settlement", lambda: _check_settlement(settings, chain)),
            *await _check_refunds(settings, chain),
            *await _list_items(settings),
        ]
    finally:
        await chain.close()


async def _check_disk(settings: Settings) -> str:
    disk = read_disk(settings, folder=existing_parent(settings.data_dir))
    if disk.problem is not None:
        raise ValueError(disk.problem)
    return f"{disk.free_bytes / 10**6:,.0f} MB free"


async def _check_outputs(settings: Settings) -> str:
    folder = settings.data_dir / "outputs"
    if not settings.outputs_url and not folder.exists():
        return f"the folder {folder}, which the first start makes"
    return await open_outputs(settings, "gateway check").probe()


async def _list_items(settings: Settings) -> list[Row]:
    """Return a row for each thing to do before selling, or done."""
    manager = PluginManager(disabled=settings.plugins_disabled)
    try:
        catalog = manager.catalog(settings)
        stored = await read_database(settings)
        refund_key = load_key(settings, "refund")
    except SettingsError:
        # Other rows report it.
        return []
    try:
        carriers = make_carriers(settings, time.time, manager.notifiers())
        known = {name for section in manager.sections() for name in section.fields}
        items = make_checklist(
            settings,
            catalog,
            stored,
            ignored=find_ignored(settings, known),
            channels=[name for carrier in carriers for name in carrier.channels],
            has_refund_key=refund_key is not None,
        )
    finally:
        await catalog.close()
    return [
        Row(name=item.name, result="ok" if item.is_done else "note", found=item.found)
        for item in items
    ]


async def _check_by_plugins(settings: Settings) -> list[Row]:
    """Return plugins' rows; loading problems have their own row."""
    try:
        checks = PluginManager(disabled=settings.plugins_disabled).check_rows(settings)
    except SettingsError:
        return []
    return [await make_row(name, check) for name, check in checks.items()]


async def _check_limits(settings: Settings) -> list[Row]:
    if not settings.limits_url:
        return []
    return [await make_row("limits", lambda: _check_redis(settings))]


async def _check_redis(settings: Settings) -> str:
    limits = make_limits(settings, time.time, secret="")
    began = time.perf_counter()
    problem = await limits.find_problem()
    ms = (time.perf_counter() - began) * 1000
    await limits.close()
    if problem:
        raise ValueError(f"Redis is unusable, so each node counts on its own: {problem}")
    return f"Redis counts the requests of all nodes, {ms:.0f} ms"


async def _check_plugins(settings: Settings, chain: Web3Chain) -> str:
    manager = PluginManager(disabled=settings.plugins_disabled)
    catalog = manager.catalog(settings)
    # As at a start, because a payment method may find a problem in its settings, or a duplicate.
    context = _make_context(settings, chain)
    manager.ways_to_pay(context)
    manager.transfer_verifier(context)
    left_out = [plugin.name for plugin in manager.loaded if plugin.problem]
    if left_out:
        raise ValueError(f"not loaded: {', '.join(left_out)}; `gateway plugins` shows why")
    await DeclaredFunctions(catalog).check_all()
    unchecked = [one for one in catalog.everything() if one.unchecked]
    if unchecked:
        slugs = ", ".join(one.endpoint.slug for one in unchecked)
        raise ValueError(f"not sold: {slugs}: {unchecked[0].unchecked}")
    if not len(catalog):
        raise ValueError("nothing is on sale; `gateway endpoints` lists what could be")
    return f"{counted(len(catalog), 'endpoint')} on sale"


async def _check_providers(settings: Settings) -> list[Row]:
    try:
        catalog = PluginManager(disabled=settings.plugins_disabled).catalog(settings)
    except SettingsError:
        # Reported in the row `plugins`.
        return []
    try:
        return await asyncio.gather(
            *(_check_provider(upstream) for upstream in catalog.enabled_upstreams())
        )
    finally:
        await catalog.close()


async def _check_provider(upstream: Upstream) -> Row:
    problem = await problem_of(upstream)
    found = "responds" if isinstance(upstream.provider, Probing) else "has no health check"
    name = f"provider {upstream.provider.name}"
    return Row(name=name, result="ok" if problem is None else "wrong", found=problem or found)


async def _check_rpc(settings: Settings, url: str) -> str:
    chain = Web3Chain(attrs.evolve(settings, rpc_urls=(url,)))
    try:
        return await check_rpc(settings, chain)
    finally:
        await chain.close()


async def _check_clock(chain: Web3Chain) -> str:
    ahead_s = time.time() - (await chain.newest_head()).timestamp
    if problem := clock_problem(ahead_s):
        raise ValueError(problem)
    return f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s >= 0 else 'behind'} the newest block"


async def _check_token(settings: Settings, chain: Web3Chain) -> str:
    if await is_true(chain, PAUSED):
        raise ValueError("USDC is paused by its issuer: no buyer can pay now")
    if await is_true(chain, IS_BLACKLISTED + word(settings.wallet)):
        raise ValueError(f"USDC blacklists {settings.wallet}: no buyer can pay it")
    return "USDC is not paused and does not blacklist the wallet"


async def _check_wallet(settings: Settings, chain: Web3Chain) -> str:
    check_plain_keys(settings)
    problem = await known_problem(settings, chain) or await contract_problem(settings, chain)
    if problem is not None:
        raise SettingsError(problem)
    balance = await chain.call_uint(BALANCE_OF + word(settings.wallet))
    return f"{settings.wallet} holds {balance / 10**6:,.2f} USDC"


async def _check_settlement(settings: Settings, chain: Web3Chain) -> str:
    settler = _open_settler(settings, chain)
    await settler.check_ready()
    return getattr(settler, "about", f"{settings.settlement} is ready")


def _open_settler(settings: Settings, chain: Web3Chain) -> Settler:
    manager = PluginManager(disabled=settings.plugins_disabled)
    return manager.settler(_make_context(settings, chain))


def _make_context(settings: Settings, chain: Web3Chain) -> PluginContext:
    # This store is never opened: a settler records only its transactions, and a check sends none.
    store = open_store(settings)
    return PluginContext(settings=settings, chain=chain, journal=store, now=time.time)


async def _check_listings(settings: Settings, validator: str | None) -> list[Row]:
    """Return a row per endpoint, or one row if none can be listed."""
    chain = Web3Chain(settings)
    try:
        blocked = await make_row("listing", lambda: _check_listed(settings, chain))
        if not blocked.ok:
            return [blocked]
        return await _find_listings(settings, validator)
    finally:
        await chain.close()


async def _find_listings(settings: Settings, validator: str | None) -> list[Row]:
    catalog = PluginManager(disabled=settings.plugins_disabled).catalog(settings)
    try:
        return [
            await make_row(
                f"listing {endpoint.slug}", partial(find_listing, settings, endpoint, validator)
            )
            for endpoint in catalog
        ]
    finally:
        await catalog.close()


async def _check_listed(settings: Settings, chain: Web3Chain) -> str:
    settler = _open_settler(settings, chain)
    await settler.check_ready()
    check_listed(settings, settler)
    return "sales are reported to a Bazaar"


async def _check_refunds(settings: Settings, chain: Web3Chain) -> list[Row]:
    """Return a row about the refund key; none without one, which is an item of the checklist."""
    has_key = settings.refund_key or settings.refund_keystore is not None
    if not has_key and settings.refunds != "automatic":
        return []
    return [await make_row("refunds", lambda: _check_refund_key(settings, chain))]


async def _check_refund_key(settings: Settings, chain: Web3Chain) -> str:
    secret = load_key(settings, "refund")
    if secret is None:
        raise ValueError("automatic, but GATEWAY_REFUND_KEY is not set")
    address = address_of(secret)
    if secret in load_settlement_keys(settings):
        raise ValueError("GATEWAY_REFUND_KEY is the settlement key: refunds need a different key")
    balance = await chain.call_uint(BALANCE_OF + word(address))
    wei = await chain.gas_balance(address)
    if not wei:
        raise ValueError(f"{address} holds no ETH for gas")
    held = f"{address} holds {balance / 10**6:,.2f} USDC and {wei / 10**18:.6f} ETH"
    return f"{'automatic' if settings.refunds_automatically else 'manual'}, {held}"
