"""Counts the RPC calls of each search of the chain, at endpoints that limit logs to some blocks.

The chain makes a block every 200 ms, and its endpoint is a stub (`limited_chain.py`); the gateway's
code above it is the real one. `--old PATH` shows another checkout beside this one.
"""

import argparse
import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
from limited_chain import BLOCK_S, HEAD, LimitedChain
from tree import BENCH, HERE, Tree, tree_at

from gateway.chain import block_times
from gateway.chain.client import Web3Chain
from gateway.domain import Authorization, Flow, Payment, PaymentState
from gateway.domain.eip3009 import BASE
from gateway.errors import ChainUnavailable, GatewayError
from gateway.payments import reconcile
from gateway.settings import Settings
from gateway_operator import unused_transfers
from gateway_operator.books import reconcile as books
from gateway_operator.books.span import Span, day_of
from gateway_testing.fakes.chain import PAYER, WALLET, quote_of_picture

try:
    from gateway.payments import nonce_events
except ImportError:
    # A checkout that searched by logs only.
    nonce_events = None

_LIMITS = (10, 500, 2_000, 10_000)
_DAY_S = 86_400.0
# The age of the database.
_BORN_S = 30 * _DAY_S
# Blocks before the head from which the older code searched.
_OLD_MARGIN = 5_000
_OLD_LAST = "last_block_before"

Search = Callable[[LimitedChain, Web3Chain], Awaitable[str]]


def _sign(chain: LimitedChain, age_s: float, *, valid_s: float = 3_600.0) -> Authorization:
    """Spend a nonce that was signed shortly before, for an hour."""
    at = int(chain.now - age_s)
    signed = Authorization(
        sender=PAYER,
        recipient=WALLET,
        value_units=20_000,
        valid_after=at - 600,
        valid_before=at + int(valid_s),
        nonce="0x" + "ab" * 32,
        signature=b"",
    )
    chain.signed, chain.spent_in = signed, chain.number_at(age_s)
    return signed


def _spent(age_s: float) -> Search:
    """Return the search before a sale, for a nonce that a third party spent to pay us."""

    async def search(chain: LimitedChain, reader: Web3Chain) -> str:
        signed, checks = _sign(chain, age_s), reconcile.EventSearch(pause_s=0.0)
        quote, cutoff = quote_of_picture(), chain.number_at(_BORN_S)
        if nonce_events is None:
            await checks.find_payment(reader, signed, quote, cutoff)
        else:
            born_at = chain.now - _BORN_S
            await checks.check_payment(reader, signed, quote, cutoff=cutoff, born_at=born_at)
        return "found"

    return search


async def _reconcile(chain: LimitedChain, reader: Web3Chain) -> str:
    """Close a payment that was sent and mined 50 minutes ago, before an outage of the endpoint."""
    signed, done = _sign(chain, 3_000.0), []
    first = chain.spent_in - _OLD_MARGIN
    payment = Payment(
        id=1,
        flow=Flow.X402,
        state=PaymentState.SETTLING,
        request_hash="",
        price_units=20_000,
        payer=PAYER,
        authorization=signed,
        search_from_block=first if nonce_events is None else chain.number_at(_BORN_S) + 1,
    )

    async def settle(*_: Any, **__: Any) -> None:
        done.append("found")

    store: Any = SimpleNamespace(settle=settle)
    born = () if nonce_events is None else (chain.now - _BORN_S,)
    closer = reconcile.Reconciler(
        store, reader, _settings(""), lambda: chain.now, *born, lambda _: None
    )
    await closer.close(payment)
    return done[0] if done else "open"


async def _refund(chain: LimitedChain, reader: Web3Chain) -> str:
    """Close a refund that was mined an hour ago, for a task of two hours ago."""
    signed = _sign(chain, 3_600.0, valid_s=10.0**12)
    known = await reader.head()
    if nonce_events is None:
        where = {"from_block": chain.spent_in - _OLD_MARGIN}
        event = await reconcile.find_event(reader, signed, BASE, known=known, **where)
    else:
        since = chain.now - 7_200 - _DAY_S
        event = await nonce_events.find_event(
            reader, signed, BASE, known=known, after=0, since=since
        )
    return "none" if event is None else "found"


async def _unused(_: LimitedChain, reader: Web3Chain) -> str:
    unused_transfers._COMMAND_PAUSE_S = 0.0  # noqa: SLF001 - a pause changes no count
    store: Any = SimpleNamespace(sum=_nothing)
    await unused_transfers.list_unused(reader, store, WALLET.lower(), days=7, hours=0)
    return "found"


async def _books(chain: LimitedChain, reader: Web3Chain) -> str:
    today = day_of(chain.now)
    span = Span(first=today - timedelta(days=7), last=today - timedelta(days=1))
    store = SimpleNamespace(sum=_nothing)
    settings = _settings("")
    desk: Any = SimpleNamespace(chain=reader, store=store, settings=settings, refunds=None)
    await books.reconcile(desk, span)
    return "found"


async def _nothing(*_: Any) -> list[Any]:
    return []


def _block(age_s: float) -> Search:
    """Return the search for the newest block of that age."""

    async def search(chain: LimitedChain, reader: Web3Chain) -> str:
        name = _OLD_LAST if nonce_events is None else "last_block_by"
        found = await getattr(block_times, name)(reader, chain.now - age_s)
        return "found" if abs(found - chain.number_at(age_s)) <= 1 / BLOCK_S else "wrong"

    return search


# By name: whether it depends on old state, and the search.
_SEARCHES: dict[str, tuple[bool, Search]] = {
    "spent nonce that paid 1 min ago": (True, _spent(60.0)),
    "spent nonce that paid 60 min ago": (True, _spent(3_600.0)),
    "reconcile after an outage of 50 min": (True, _reconcile),
    "refund that was mined 60 min ago": (True, _refund),
    "unused transfers of a week": (False, _unused),
    "books of seven days": (False, _books),
    "block of 10 minutes ago": (False, _block(600.0)),
    "block of a week ago": (False, _block(7 * _DAY_S)),
    "cutoff, a database of 30 days": (False, _block(_BORN_S)),
}


def _settings(url: str) -> Settings:
    return attrs.evolve(
        Settings(wallet=WALLET, settlement_key="1" * 64, base_url="http://127.0.0.1:8080"),
        rpc_urls=(url,),
    )


async def _count(search: Search, most: int, *, keeps_state: bool) -> str:
    """Return such as "4 + 12": queries of logs, and other calls; then what went wrong, if so."""
    async with LimitedChain(most_log_blocks=most, keeps_state=keeps_state).served() as chain:
        reader = Web3Chain(_settings(chain.url))
        await reader.head()
        chain.calls = Counter()
        try:
            found = await search(chain, reader)
        except ChainUnavailable as error:
            found = "too narrow" if "at once" in error.message else "no answer"
        except GatewayError as error:
            found = "402" if error.status == 402 else "500"
        finally:
            await reader.close()
    logs = chain.calls.pop("eth_getLogs", 0)
    counted = f"{logs:,} + {chain.calls.total():,}"
    return counted if found == "found" else f"{counted}: {found}"


async def _count_all() -> dict[str, list[str]]:
    assert HEAD > _BORN_S / BLOCK_S
    rows = {}
    for name, (depends, search) in _SEARCHES.items():
        for keeps_state in (True, False) if depends else (True,):
            state = "" if not depends else ", old state" if keeps_state else ", no old state"
            counted = [await _count(search, most, keeps_state=keeps_state) for most in _LIMITS]
            rows[name + state] = counted
    return rows


def _count_in(tree: Tree) -> dict[str, list[str]]:
    """Count in another process, by the code of a tree."""
    program = [tree.python, str(BENCH / "log_searches.py"), "--json"]
    paths = ":".join([*tree.sources, str(BENCH)])
    made = subprocess.run(
        program, env={"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise SystemExit(made.stderr)
    # After the lines of the log.
    found: dict[str, list[str]] = json.loads(made.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, help="another checkout")
    parser.add_argument("--json", action="store_true", help="only this tree's rows, for a program")
    chosen = parser.parse_args()
    if chosen.json:
        print(json.dumps(asyncio.run(_count_all())))
        return
    from rich.table import Table
    from tables import print_head, print_tables

    console = print_head()
    for tree in [*([tree_at(chosen.old)] if chosen.old else []), HERE]:
        title = f"{tree.name}: queries of logs + other RPC calls, by blocks per query"
        table = Table("", *(f"{most:,}" for most in _LIMITS), title=title)
        for name, counted in _count_in(tree).items():
            table.add_row(name, *counted)
        print_tables(console, [table])


if __name__ == "__main__":
    main()
