"""Factories for the desk and the alarms of a running gateway."""

import functools
from collections.abc import Mapping, Sequence

from gateway.plugins.manager import PluginManager
from gateway.plugins.unknown_settings import find_ignored
from gateway.running.checks import checks, find_selling, for_operator
from gateway.running.facts_of_parts import find_conditions
from gateway.running.gateway import Gateway
from gateway_operator.alarms.assembly import make_watch
from gateway_operator.alarms.channels import make_carriers
from gateway_operator.alarms.watch import AlarmWatch
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.running import Check, Running


def make_desk(gateway: Gateway) -> Desk:
    """Return the desk of this gateway."""
    return Desk(
        settings=gateway.settings,
        store=gateway.store,
        chain=gateway.chain,
        now=gateway.now,
        refunds=gateway.refunds,
        catalog=gateway.catalog,
        changes=gateway.changes,
        running=_make_running(gateway),
    )


def _make_running(gateway: Gateway) -> Running:
    async def find_checks() -> Sequence[Check]:
        return await _read_checks(gateway)

    def find_blocks() -> Mapping[str, float]:
        return {} if gateway.watchdog is None else gateway.watchdog.longest_blocks()

    @functools.cache
    def find_ignored_settings() -> Sequence[str]:
        sections = PluginManager(disabled=gateway.settings.plugins_disabled).sections()
        known = {name for section in sections for name in section.fields}
        return find_ignored(gateway.settings, known)

    def find_channels() -> Sequence[str]:
        carriers = make_carriers(gateway.settings, gateway.now, gateway.notifiers)
        return [name for carrier in carriers for name in carrier.channels]

    return Running(
        started_at=gateway.started_at,
        checks=find_checks,
        selling=lambda found: find_selling(gateway, [one.stops for one in found if not one.ok]),
        settlement_keys=lambda: gateway.settlements.addresses,
        conditions=lambda: find_conditions(gateway),
        undelivered=lambda task_id: _find_undelivered(gateway, task_id),
        blocked=find_blocks,
        ignored_settings=find_ignored_settings,
        channels=find_channels,
        sections=gateway.sections,
        try_settings=gateway.try_settings,
    )


def make_alarms(gateway: Gateway, desk: Desk) -> AlarmWatch:
    """Return the alarm watch of this gateway."""
    return make_watch(
        desk,
        gateway.notifiers,
        gateway.redactor.without_secrets,
        every_s=gateway.timing.alarms_s,
    )


async def _read_checks(gateway: Gateway) -> Sequence[Check]:
    return [
        Check(name=row["name"], ok=row["ok"], stops=row["stops"], problem=row["problem"] or "")
        for row in for_operator(await checks(gateway), gateway)
    ]


async def _find_undelivered(gateway: Gateway, task_id: str) -> Sequence[tuple[str, int]]:
    """Return a task's undelivered events; none without a plugin that sends them."""
    callbacks = gateway.callbacks
    return [] if callbacks is None else await callbacks.undelivered(task_id)
