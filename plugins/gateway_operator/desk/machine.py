"""The data of the page System."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import attrs
import typed_settings as ts

from gateway.domain.eip3009 import checksum_address
from gateway.plugins.installed import find_sections
from gateway.settings import Settings, variable
from gateway.store.disk import DiskState, read_disk
from gateway.version import VERSION
from gateway_operator.audit_log import ActionRecord
from gateway_operator.desk.backups import BackupStatus, status
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.facts import Facts, read_facts
from gateway_operator.desk.last_seen import Seen
from gateway_operator.desk.system import read_clock
from gateway_operator.sql.current_state import database_bytes as read_size

_ACTIONS = 10
# A plugin's setting may be a key.
_SET, _NOT_SET = "set", "not set"
_CLOCK_LATE_S = 15.0


@attrs.frozen(kw_only=True)
class ShownSetting:
    """A setting; of a secret only whether it is set."""

    variable: str
    value: str
    is_default: bool


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
    settings: Sequence[ShownSetting]

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
        settings=show_settings(settings),
        keys={one.address: _describe_key(desk, one.role, one.address) for one in facts.keys},
        actions=actions,
    )


def show_settings(settings: Settings) -> list[ShownSetting]:
    """Return every setting; of secrets, and possible ones, only whether it is set."""
    parts: list[Any] = [settings.section("", one.kind) for one in find_sections(settings)]
    shown = [
        _show_setting(field, getattr(values, field.name))
        for values in (settings, *parts)
        for field in attrs.fields(type(values))
        if "about" in field.metadata
    ]
    names = {one.variable for one in shown}
    plugins = [
        ShownSetting(variable=variable(name), value=_SET, is_default=False)
        for name, value in sorted(settings.plugin_values.items())
        if value not in ("", None) and variable(name) not in names
    ]
    return [*shown, *plugins]


def _show_setting(field: "attrs.Attribute[Any]", value: Any) -> ShownSetting:
    is_secret = isinstance(field.default, ts.SecretStr) or not field.repr
    is_default = value == field.default
    if is_secret:
        shown = _SET if value and not is_default else _NOT_SET
    elif isinstance(value, tuple | list):
        shown = ", ".join(str(one) for one in value)
    elif isinstance(value, bool):
        shown = "yes" if value else "no"
    else:
        shown = str(value)
    return ShownSetting(variable=variable(field.name), value=shown, is_default=is_default)


def _describe_key(desk: Desk, role: str, address: str) -> ShownKey:
    chain, whole = desk.settings.chain, checksum_address(address.lower())
    eth = TopUp(asset="ETH", uri=f"ethereum:{whole}@{chain.chain_id}")
    token = checksum_address(chain.token)
    usdc = TopUp(asset="USDC", uri=f"ethereum:{token}@{chain.chain_id}/transfer?address={whole}")
    top_ups = {"wallet": [usdc], "settlement": [eth], "refund": [usdc, eth]}[role]
    return ShownKey(role=role, address=whole, top_ups=top_ups)
