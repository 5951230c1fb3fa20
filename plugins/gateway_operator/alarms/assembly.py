"""Connects the alarm watch with a desk."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gateway.contracts import Clock
from gateway.contracts.parts import Alarm
from gateway.store.meta import note_write
from gateway_operator.alarms.channels import Notify, make_carriers
from gateway_operator.alarms.digest import is_due, write_digest
from gateway_operator.alarms.heartbeat import Heartbeat
from gateway_operator.alarms.operator_url import OperatorUrl
from gateway_operator.alarms.sender import AlarmSender
from gateway_operator.alarms.watch import EVERY_S, AlarmWatch
from gateway_operator.desk.conditions import (
    Condition,
    Thresholds,
    find_conditions,
    find_failed_checks,
)
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.facts import read_facts
from gateway_operator.desk.overview import read_overview
from gateway_operator.settings import OperatorSettings, operator_settings_of, parse_time

_SEARCH_EVERY_S = 600.0
# A round of alarms waits this long for a search of the newest blocks, which a theft needs.
SEARCH_WAIT_S = 2.0


def make_watch(
    desk: Desk,
    notifiers: Mapping[str, Notify],
    clean: Callable[[str], str],
    *,
    every_s: float = EVERY_S,
) -> AlarmWatch:
    """Return the alarm watch of a desk; `clean` removes secrets from a text."""
    settings, chosen = desk.settings, operator_settings_of(desk.settings)
    thresholds = Thresholds.of(settings)

    async def find_reported() -> Sequence[Condition]:
        found = await _find_conditions(desk, thresholds)
        return [one for one in found if one.raises_alarm]

    def find_uncertain() -> Mapping[str, float]:
        # A theft in a block that is not read yet, until the operator has booked it.
        search = desk.movements
        return {} if search.is_current else {"unbooked": search.booked_at}

    carriers = make_carriers(settings, desk.now, notifiers)
    return AlarmWatch(
        store=desk.store,
        find_conditions=find_reported,
        find_uncertain=find_uncertain,
        try_write=partial(_try_write, desk),
        write_digest=partial(_write_due_digest, desk, parse_time(chosen.digest_at)),
        clean=clean,
        sender=AlarmSender(store=desk.store, carriers=carriers, now=desk.now),
        heartbeat=_make_heartbeat(chosen, desk.now),
        now=desk.now,
        base_url=settings.base_url,
        gateway=settings.name,
        every_s=every_s,
    )


def _make_heartbeat(chosen: OperatorSettings, now: Clock) -> Heartbeat | None:
    if not chosen.heartbeat_url:
        return None
    pauses = chosen.heartbeat_pause_url
    return Heartbeat(
        address=OperatorUrl(url=chosen.heartbeat_url),
        now=now,
        pause_address=OperatorUrl(url=pauses) if pauses else None,
        pause_key=str(chosen.heartbeat_pause_key),
    )


async def _write_due_digest(desk: Desk, at_s: float | None, last: float | None) -> Alarm | None:
    settings, now = desk.settings, desk.now()
    if not is_due(at_s, last, now):
        return None
    overview = await read_overview(desk, "24h")
    return write_digest(overview, settings.base_url, settings.name, now)


async def _try_write(desk: Desk) -> None:
    await desk.store.check_writable()
    await desk.store.write(note_write, desk.now())


async def _find_conditions(desk: Desk, thresholds: Thresholds) -> Sequence[Condition]:
    """Return the conditions; only failed checks if the database cannot be read."""
    try:
        await _search_unused(desk)
        await desk.movements.refresh(SEARCH_WAIT_S)
        return find_conditions(await read_facts(desk), thresholds)
    except Exception:
        checks = () if desk.running is None else await desk.running.checks()
        failed = list(find_failed_checks(checks))
        if not failed:
            raise
        return failed


async def _search_unused(desk: Desk) -> None:
    """Start a search for unused transfers every ten minutes, without waiting.

    The first search reads a week of the chain, later ones only new blocks.
    """
    search = desk.unused
    if search.searched_at is None or desk.now() - search.searched_at >= _SEARCH_EVERY_S:
        await search.refresh(0.0)
