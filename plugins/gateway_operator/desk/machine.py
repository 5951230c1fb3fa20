"""The data of the page System."""

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import attrs

from gateway.domain.eip3009 import checksum_address
from gateway.store.disk import DiskState, read_disk
from gateway.version import VERSION
from gateway_operator.audit_log import ActionRecord
from gateway_operator.desk.backups import BackupStatus, status
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.facts import Facts, read_facts
from gateway_operator.desk.last_seen import Seen
from gateway_operator.desk.settings_list import SettingRow, read_groups
from gateway_operator.desk.system import read_clock
from gateway_operator.sql.current_state import database_bytes as read_size

_ACTIONS = 10
_CLOCK_LATE_S = 15.0


@attrs.frozen(kw_only=True)
class TopUp:
    """A payment request to one of the gateway's keys, for wallet apps."""

    # `ETH` or `USDC`.
    asset: str

    # An EIP-681 URI, which includes the chain.
    uri: str


@attrs.frozen(kw_only=True)
class ShownKey:
    """An address of the operator's, and ways to top it up."""

    # `wallet`, `settlement` or `refund`.
    role: str

    # With the EIP-55 checksum.
    address: str
    top_ups: Sequence[TopUp]


@attrs.frozen(kw_only=True)
class Machine:
    """The state of the gateway and its machine."""

    # Unix seconds.
    at: float
    version: str
    network: str

    # None in a command.
    started_at: float | None
    facts: Facts

    # Seconds that the clock is ahead of the newest block; negative: behind.
    clock: Seen[float]
    clock_is_off: bool
    disk: DiskState
    database_bytes: int

    # Hosts only: a path may contain a key.
    rpc_hosts: Sequence[str]
    workers: int
    backups: BackupStatus
    settings: Sequence[SettingRow]

    # By address in lower case.
    keys: Mapping[str, ShownKey]

    # The newest ones.
    actions: Sequence[ActionRecord]


async def read_machine(desk: Desk) -> Machine:
    """Return the state of the machine; an unresponsive part costs at most two seconds."""
    facts, clock, copies, database_bytes, actions, disk = await asyncio.gather(
        read_facts(desk),
        desk.last_seen.ask("clock", lambda: read_clock(desk.chain, desk.now)),
        status(desk),
        desk.store.sum(read_size),
        desk.records.actions(None, _ACTIONS),
        asyncio.to_thread(read_disk, desk.settings, is_full=desk.store.is_full),
    )
    groups = await read_groups(desk)
    settings = desk.settings
    return Machine(
        at=desk.now(),
        version=VERSION,
        network=settings.chain.name,
        started_at=desk.running.started_at if desk.running is not None else None,
        facts=facts,
        clock=clock,
        clock_is_off=clock.value is not None and abs(clock.value) > _CLOCK_LATE_S,
        disk=disk,
        database_bytes=database_bytes,
        rpc_hosts=[urlsplit(url).hostname or "?" for url in settings.rpc_urls],
        workers=settings.workers,
        backups=copies,
        settings=[row for group in groups for row in group.rows],
        keys={one.address: _describe_key(desk, one.role, one.address) for one in facts.keys},
        actions=actions,
    )


def _describe_key(desk: Desk, role: str, address: str) -> ShownKey:
    chain, whole = desk.settings.chain, checksum_address(address.lower())
    eth = TopUp(asset="ETH", uri=f"ethereum:{whole}@{chain.chain_id}")
    token = checksum_address(chain.token)
    usdc = TopUp(asset="USDC", uri=f"ethereum:{token}@{chain.chain_id}/transfer?address={whole}")
    top_ups = {"wallet": [usdc], "settlement": [eth], "refund": [usdc, eth]}[role]
    return ShownKey(role=role, address=whole, top_ups=top_ups)
