"""The daily digest: sales, refunds owed, margin, and conditions."""

from collections.abc import Sequence

from gateway.contracts.parts import Alarm
from gateway_operator.desk.conditions import Condition
from gateway_operator.desk.overview import Money, Overview
from gateway_operator.desk.wording import counted, usdc

_DAY_S = 86_400.0
# A gateway that starts later than this after the hour skips the day's digest.
_LATE_S = 7_200.0
_MAX_NAMED = 10
_WORDS = {"bad": "Urgent", "warn": "Soon", "note": "Notice"}


def is_due(at_s: float | None, last: float | None, now: float) -> bool:
    """Whether to write a digest now.

    `at_s` is in seconds from midnight UTC; None: never.
    """
    if at_s is None:
        return False
    moment = now - (now - at_s) % _DAY_S
    return now - moment < _LATE_S and (last is None or last < moment)


def write_digest(overview: Overview, base_url: str, gateway: str, now: float) -> Alarm:
    """Return the digest of an overview of 24 hours."""
    money, owed = overview.money, overview.facts.owed
    refunds = owed.undecided + owed.moving + owed.failed
    lines = [
        f"Sold: {counted(money.sold, 'sale')}, {usdc(money.taken_units)} USDC.",
        f"Goes back: {counted(money.back, 'sale')}, {usdc(money.back_units)} USDC."
        if money.back
        else "",
        f"Owed now: {usdc(owed.units)} USDC in {counted(refunds, 'refund')}.",
        _write_margin(money),
        _write_needs(overview.needs),
    ]
    return Alarm(
        event="digest",
        key="digest",
        urgency="notice",
        title=f"{counted(money.sold, 'sale')} in the last day, {usdc(money.taken_units)} USDC",
        text="\n".join(line for line in lines if line),
        todo="",
        link=f"{base_url}/admin",
        since=now - _DAY_S,
        gateway=gateway,
    )


def _write_margin(money: Money) -> str:
    kept = f"{usdc(money.kept_units)} USDC before gas"
    if money.uncosted:
        return f"Kept: at most {kept}; the cost of {counted(money.uncosted, 'result')} is unknown."
    return f"Kept: {kept}."


def _write_needs(needs: Sequence[Condition]) -> str:
    if not needs:
        return "Nothing needs you."
    lines = [f"{_WORDS[one.level]}: {one.title}" for one in needs[:_MAX_NAMED]]
    more = len(needs) - _MAX_NAMED
    return "\n".join(["Needs you:", *lines, *([f"and {more} more"] if more > 0 else [])])
