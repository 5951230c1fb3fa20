"""Gauges of keys, chain, disk and backups, from the facts of the operator's pages."""

from collections.abc import Iterator, Sequence

import attrs
from prometheus_client.core import GaugeMetricFamily, Metric

from gateway.store.disk import read_disk
from gateway_operator.desk import backups
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.facts import KeyFacts, read_facts

_PREFIX = "gateway_"
_UNITS = 10**6
_WEI = 10**18


@attrs.frozen(kw_only=True)
class State:
    """Current values of a scrape. None is unknown, and has no sample."""

    keys: Sequence[KeyFacts]

    # Seconds that the clock is ahead of the newest block, and the block's age.
    clock_ahead_s: float | None
    block_age_s: float | None

    # Bytes.
    disk_free: int
    database: int

    disk_inodes: int | None

    # Seconds, and payments that a restore would lose.
    backup_age_s: float | None
    drill_age_s: float | None
    forgets: int | None


async def read_state(desk: Desk) -> State:
    """Return the state; waits at most two seconds for the chain."""
    facts = await read_facts(desk)
    copies = await backups.status(desk)
    head, folder = facts.head, desk.settings.data_dir
    seen_at, made_at = head.at, None if head.value is None else head.value.timestamp
    database = folder / "gateway.db"
    disk = read_disk(desk.settings)
    return State(
        keys=facts.keys,
        clock_ahead_s=None if made_at is None or seen_at is None else seen_at - made_at,
        block_age_s=None if made_at is None else desk.now() - made_at,
        disk_free=disk.free_bytes,
        disk_inodes=disk.free_inodes,
        database=database.stat().st_size if database.exists() else 0,
        backup_age_s=copies.age_s,
        drill_age_s=copies.drill_age_s,
        forgets=None if copies.forgotten is None else copies.forgotten.payments,
    )


def collect_state(state: State) -> Iterator[Metric]:
    """Yield a gauge for each number; unknown ones have no sample."""
    yield from _collect_keys(state.keys)
    for name, about, value in (
        (
            "clock_offset_seconds",
            "Seconds that this machine's clock is ahead of the newest block.",
            state.clock_ahead_s,
        ),
        ("rpc_block_age_seconds", "Age of the newest block that was seen.", state.block_age_s),
        ("disk_free_bytes", "Free bytes of the data folder's disk.", state.disk_free),
        ("disk_free_inodes", "Free inodes of the data folder's disk.", state.disk_inodes),
        ("database_bytes", "Bytes of the database, without its write-ahead log.", state.database),
        ("backup_age_seconds", "Age of the newest backup.", state.backup_age_s),
        ("drill_age_seconds", "Age of the newest drill that succeeded.", state.drill_age_s),
        (
            "restore_lost_payments",
            "Payments that a restore of the newest backup would lose.",
            state.forgets,
        ),
    ):
        family = GaugeMetricFamily(_PREFIX + name, about)
        if value is not None:
            family = GaugeMetricFamily(_PREFIX + name, about, value=float(value))
        yield family


def _collect_keys(keys: Sequence[KeyFacts]) -> Iterator[Metric]:
    eth = GaugeMetricFamily(_PREFIX + "key_eth", "ETH of a key.", labels=["key"])
    usdc = GaugeMetricFamily(_PREFIX + "key_usdc", "USDC of a key or the wallet.", labels=["key"])
    about = "About how many transactions the ETH of a key pays for."
    left = GaugeMetricFamily(_PREFIX + "settlements_left", about, labels=["key"])
    for name, key in _named(keys):
        if key.wei is not None and key.wei.value is not None:
            eth.add_metric([name], key.wei.value / _WEI)
        if key.usdc is not None and key.usdc.value is not None:
            usdc.add_metric([name], key.usdc.value / _UNITS)
        if key.lasts_for is not None:
            left.add_metric([name], key.lasts_for)
    yield from (eth, usdc, left)


def _named(keys: Sequence[KeyFacts]) -> Iterator[tuple[str, KeyFacts]]:
    """Yield each key with its role; further keys of a role get a number."""
    counts: dict[str, int] = {}
    for key in keys:
        counts[key.role] = counts.get(key.role, 0) + 1
        number = counts[key.role]
        yield key.role if number == 1 else f"{key.role} {number}", key
