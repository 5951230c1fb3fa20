"""Conditions of settings that were set on the page."""

from collections.abc import Iterator

from gateway.settings import variable
from gateway_operator.desk.condition import Condition, Thresholds
from gateway_operator.desk.facts import Facts
from gateway_operator.desk.wording import counted

PAGE = "/admin/settings"
_SHOWN = 3


def _unread(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield values that have no effect, so what they put on sale is missing."""
    unread = facts.machine.settings.unread
    if not unread:
        return
    first = next(iter(unread))
    yield Condition(
        condition="settings_unread",
        level="bad",
        title=f"{counted(len(unread), 'setting')} from the page without effect",
        text=f"{variable(first)}: {unread[first].removesuffix('.')}.",
        action="Then restart the gateway. Until then the defaults hold.",
        page="system",
        button="View",
        href=PAGE,
    )


def _restart_due(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    pending = [variable(name) for name in facts.machine.settings.pending]
    if not pending:
        return
    more = f" and {len(pending) - _SHOWN} more" if len(pending) > _SHOWN else ""
    yield Condition(
        condition="restart_due",
        level="note",
        title=f"A restart is due: {counted(len(pending), 'setting')} changed",
        text=f"{', '.join(pending[:_SHOWN])}{more}.",
        action="Restart the gateway. No sale is lost.",
        page="system",
        button="View",
        href=PAGE,
        raises_alarm=False,
    )


SETTINGS_RULES = (_unread, _restart_due)
