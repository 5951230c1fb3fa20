"""The checks, conditions and pending work of parts, checked before anything else reads them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

import attrs

from gateway.concurrency.fence import Fault, Fenced
from gateway.contracts.parts import Check, Condition, Part
from gateway.running.gateway import Gateway
from gateway.running.lifecycle import owner_of

Fact = TypeVar("Fact", Check, Condition, str)

_NOTHING = "nothing"
_LEVELS = ("bad", "warn", "note")
# Of one part.
_MOST = 50
_MAX_NAME_CHARS = 100
_MAX_TEXT_CHARS = 2_000
_NAMES = ("name", "subject", "button")


async def find_checks(gateway: Gateway) -> list[Check]:
    """Return the parts' checks. A part that fails gets a failed check."""

    async def ask(part: Part) -> list[Check]:
        if part.checks is None:
            return []
        found = await _ask(gateway, part, "checks", part.checks, checked_check)
        if found is None or len(found) > _MOST:
            summary = "This check failed."
            return [Check(name=part.name, ok=False, stops=_NOTHING, summary=summary)]
        return found

    return _joined(await asyncio.gather(*map(ask, gateway.lifecycle.parts)))


async def find_conditions(gateway: Gateway) -> list[Condition]:
    """Return the parts' conditions, and one for each call of a plugin that failed."""

    async def ask(part: Part) -> list[Condition]:
        if part.conditions is None:
            return []
        found = await _ask(gateway, part, "conditions", part.conditions, checked_condition) or []
        return found[:_MOST]

    found = _joined(await asyncio.gather(*map(ask, gateway.lifecycle.parts)))
    return found + [_describe(fault, gateway.now()) for fault in gateway.fence.faults()]


async def find_pending(gateway: Gateway) -> list[str]:
    """Return the reasons for which the process may not end now, sorted; none if it may.

    A part that fails counts as pending, by its name.
    """

    async def ask(part: Part) -> list[str]:
        if part.pending is None:
            return []
        found = await _ask(gateway, part, "pending", part.pending, checked_reason)
        return [part.name] if found is None else found[:_MOST]

    return sorted(set(_joined(await asyncio.gather(*map(ask, gateway.lifecycle.parts)))))


async def _ask(
    gateway: Gateway,
    part: Part,
    name: str,
    ask: Callable[[], Awaitable[Iterable[Any]]],
    check: Callable[[Any], Fact],
) -> list[Fact] | None:
    """Return a part's facts, one more than allowed if it has more, or None if it fails."""

    async def read() -> list[Fact]:
        return [check(one) for one in islice(await ask(), _MOST + 1)]

    owner = owner_of(part)
    try:
        found = await gateway.fence.wait(owner, name, read, limit_s=gateway.timing.facts_s)
    except Fenced:
        return None
    if len(found) > _MOST:
        gateway.fence.note(owner, name, ValueError(f"{name} returns more than {_MOST}"))
    return found


def checked_check(found: Any) -> Check:
    """Return a check with texts that can be sent; raises for values of another type."""
    if not isinstance(found, Check):
        raise TypeError(f"checks returns a {type(found).__name__}, no gateway.Check")
    if not isinstance(found.ok, bool):
        raise TypeError(f"the check's ok is a {type(found.ok).__name__}, no bool")
    texts = {name: _text(found, name) for name in ("name", "stops", "summary", "problem")}
    return attrs.evolve(found, **texts)  # type: ignore[arg-type]


def checked_condition(found: Any) -> Condition:
    """Return a condition with texts that can be stored; raises for values of another type."""
    if not isinstance(found, Condition):
        raise TypeError(f"conditions returns a {type(found).__name__}, no gateway.Condition")
    if not isinstance(found.level, str) or found.level not in _LEVELS:
        raise ValueError(f"the condition's level is {found.level!r}, not {', '.join(_LEVELS)}")
    if not isinstance(found.raises_alarm, bool):
        raise TypeError("the condition's raises_alarm is no bool")
    names = ("name", "subject", "title", "text", "action", "href", "button")
    texts = {name: _text(found, name) for name in names}
    if not texts["name"]:
        raise ValueError("a condition has no name")
    if not texts["href"].startswith(("/", "https://", "http://")):
        raise ValueError(f"the condition's href {texts['href']!r} is no path")
    return attrs.evolve(found, **texts)  # type: ignore[arg-type]


def checked_reason(found: Any) -> str:
    """Return a reason that can be logged; raises for a value of another type."""
    if not isinstance(found, str):
        raise TypeError(f"pending returns a {type(found).__name__}, no text")
    return "".join(found)[:_MAX_NAME_CHARS].encode(errors="replace").decode()


def _text(found: Check | Condition, name: str) -> str:
    """Return a text as UTF-8 and JSON can have it, and PostgreSQL can store it."""
    text = getattr(found, name)
    if not isinstance(text, str):
        raise TypeError(f"{name} is a {type(text).__name__}, no text")
    most = _MAX_NAME_CHARS if name in _NAMES else _MAX_TEXT_CHARS
    # A subclass of `str` may have any behaviour.
    plain = "".join(text).replace("\0", "")[:most]
    return plain.encode(errors="replace").decode()


def _joined(groups: Iterable[list[Fact]]) -> list[Fact]:
    return [one for group in groups for one in group]


def _describe(fault: Fault, now: float) -> Condition:
    owner, minutes = fault.owner, max(now - fault.last_at, 0.0) / 60
    plugin = (
        owner.plugin
        if owner.plugin == owner.part or not owner.part
        else (f"{owner.plugin} ({owner.part})")
    )
    return Condition(
        name="plugin_failed",
        subject=f"{owner.plugin} {owner.part} {fault.step}"[:_MAX_NAME_CHARS],
        level="warn",
        title=f"The plugin {plugin} fails",
        text=f"Its {fault.step} failed {fault.count:,} times, last {minutes:,.0f} minutes ago, "
        f"with {fault.error}. Only this feature of the plugin is off.",
        action="Find the error in the log line with its name, and update or disable the plugin.",
    )
