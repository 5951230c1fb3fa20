"""Derives conditions from facts, each by a small pure function."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from gateway_operator.desk.condition import Condition, Level, Thresholds
from gateway_operator.desk.endpoint_conditions import ENDPOINT_RULES
from gateway_operator.desk.facts import Facts, KeyFacts
from gateway_operator.desk.machine_conditions import MACHINE_RULES
from gateway_operator.desk.movement_conditions import MOVEMENT_RULES
from gateway_operator.desk.running import Check
from gateway_operator.desk.settings_conditions import SETTINGS_RULES
from gateway_operator.desk.wording import age, counted, sentence, usdc

# By the name of the check.
_CHECK_ACTIONS = {
    "database": "Check that the disk is not full and that the database server runs.",
    "rpc": "Name a second endpoint in GATEWAY_RPC_URLS.",
    "disk": "Free some space, or enlarge the volume.",
    "wallet": "Set GATEWAY_WALLET to an address that can receive.",
    "workers": "Start a node with workers (GATEWAY_ROLE).",
    "wakes": "Check that the database connection supports LISTEN; a pooler may not.",
    "limits": "Check the Redis server of GATEWAY_LIMITS_URL.",
}
_ORDER: Mapping[str, int] = {"bad": 0, "warn": 1, "note": 2}
__all__ = ["Condition", "Level", "Thresholds", "find_conditions", "find_failed_checks"]


def find_conditions(facts: Facts, thresholds: Thresholds | None = None) -> list[Condition]:
    """Return the conditions that hold, worst first."""
    limits = thresholds or Thresholds()
    found: dict[str, Condition] = {}
    for one in (one for rule in _RULES for one in rule(facts, limits)):
        # An alarm has one condition. A plugin's may have the name of the gateway's own.
        found.setdefault(one.key, one)
    return sorted(_merge(found).values(), key=lambda one: _ORDER[one.level])


def _merge(found: dict[str, Condition]) -> dict[str, Condition]:
    """Leave out what another condition causes: an RPC endpoint or gas that stops settlements."""
    settlement = found.get("check:settlement")
    if settlement is None:
        return found
    causes = [one for key, one in found.items() if key == "check:rpc" or _is_out_of_gas(one)]
    if not causes:
        return found
    rest = {key: one for key, one in found.items() if one is not settlement}
    cause = causes[0]
    if cause.condition == "gas":
        text = f"{cause.text} No x402 payment is settled until then."
        rest[cause.key] = attrs.evolve(
            cause, title=f"x402 stopped: {_lower(cause.title)}", text=text
        )
    return rest


def _is_out_of_gas(one: Condition) -> bool:
    return one.condition == "gas" and one.level == "bad"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


Rule = Callable[[Facts, Thresholds], Iterator[Condition]]


def _checks(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    return find_failed_checks(facts.checks or ())


def find_failed_checks(checks: Sequence[Check]) -> Iterator[Condition]:
    """Yield failed checks, except of providers, which have conditions of their own, and roles."""
    for check in checks:
        if (
            check.ok
            or check.name in ("draining", "role")
            or check.name.startswith(("provider ", "endpoint "))
        ):
            continue
        stopped = "Nothing is sold" if check.stops_all_sales else f"{check.stops} stopped"
        title = f"Check failed: {check.name}" if check.stops_nothing else f"{stopped}: {check.name}"
        yield Condition(
            condition="check",
            subject=check.name,
            level="warn" if check.stops_nothing else "bad",
            title=title,
            text=sentence(check.problem) if check.problem else "",
            action=_CHECK_ACTIONS.get(check.name, "Run `gateway check`: it reports what to fix."),
            page="system",
            button="Details",
            href="/admin/system",
        )


def _refunds_failed(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    owed = facts.owed
    if owed.failed:
        yield Condition(
            condition="refund_failed",
            level="bad",
            title=f"{counted(owed.failed, 'refund')} failed, {usdc(owed.failed_units)} USDC",
            text="The chain or the token rejected the transfer.",
            action="Send each again, or refund another address.",
            page="refunds",
            button="View",
            href="/admin/refunds?state=failed",
        )


def _refunds_undecided(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    owed = facts.owed
    if not owed.undecided:
        return
    waits_s = facts.at - (owed.undecided_since or facts.at)
    key = facts.key("refund")
    holds = None if key is None or key.usdc is None else key.usdc.value
    held = (
        "There is no refund key."
        if key is None
        else "The balance of the refund key is unknown."
        if holds is None
        else f"The refund key holds {usdc(holds)} USDC."
    )
    yield Condition(
        condition="refund_undecided",
        level="warn",
        title=f"{counted(owed.undecided, 'refund')} to decide, {usdc(owed.undecided_units)} USDC",
        text=f"The oldest waits for {age(waits_s)}. {held}",
        action="Approve or reject each.",
        page="refunds",
        button="Decide",
        href="/admin/refunds",
        # Pages show it at once; the alarm waits.
        raises_alarm=waits_s >= limits.refund_soon_s,
    )


def _refund_key(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    key, owed = facts.key("refund"), facts.owed
    if key is None or key.usdc is None or key.usdc.value is None:
        return
    if key.usdc.value < owed.units:
        is_approved = key.usdc.value < owed.moving_units
        yield Condition(
            condition="refund_key",
            subject="usdc",
            level="bad" if is_approved else "warn",
            title="The refund key holds less than is owed",
            text=f"It holds {usdc(key.usdc.value)} USDC; {usdc(owed.units)} USDC is owed.",
            action=f"Send USDC to {key.address}.",
            page="system",
            button="Show the address",
            href="/admin/system#keys",
        )
    if key.lasts_for is not None and key.lasts_for < limits.refund_gas_soon:
        yield _low_gas(key, "refund", "bad" if key.lasts_for < 1 and owed.moving else "warn")


def _gas(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    # Of the last day. Sales by transfer need no settlement.
    sold = sum(one.sold for one in facts.endpoints)
    for key in facts.keys:
        if key.role != "settlement" or key.lasts_for is None:
            continue
        if key.lasts_for < max(limits.gas_soon, 3 * sold):
            yield _low_gas(
                key, "settlement", "bad" if key.lasts_for < limits.gas_urgent else "warn"
            )


def _low_gas(key: KeyFacts, word: str, level: Level) -> Condition:
    wei = key.wei.value if key.wei is not None else None
    return Condition(
        condition="gas",
        subject=key.address,
        level=level,
        title=(
            f"Gas for about {counted(key.lasts_for, word)} left"
            if key.lasts_for
            else f"Not enough gas for a {word}"
        ),
        text=f"The {word} key holds {(wei or 0) / 10**18:.6f} ETH.",
        action=f"Send ETH on Base to {key.address}.",
        page="system",
        button="Show the address",
        href="/admin/system#keys",
    )


def _open_payments(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    waiting = facts.open_payments
    age_s = facts.at - (waiting.since or facts.at)
    if age_s < limits.payment_open_soon_s:
        return
    yield Condition(
        condition="payment_open",
        level="bad" if age_s >= limits.payment_open_urgent_s else "warn",
        title=f"{counted(waiting.count, 'payment')} without an outcome",
        text=f"The oldest since {age(age_s)}. {_describe_open(facts)}",
        action="Check that the RPC endpoints and the facilitator respond.",
        page="payments",
        button="View",
        href="/admin/payments",
    )


def _describe_open(facts: Facts) -> str:
    methods = facts.open_by_method
    found = [
        f"{name} has not confirmed or refused the payment and is asked again. Without a plugin "
        "for it the payment stays open."
        for name in sorted(methods)
    ]
    if facts.open_payments.count > sum(methods.values()):
        found.insert(0, "The chain has not confirmed or ruled out the payment yet.")
    return " ".join(found)


def _queue(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    waiting = facts.waiting_tasks
    age_s = facts.at - (waiting.since or facts.at)
    if age_s < limits.queue_soon_s:
        return
    yield Condition(
        condition="queue",
        level="bad" if age_s >= limits.queue_urgent_s else "warn",
        title=f"{counted(waiting.count, 'paid task')} in the queue",
        text=f"The oldest waits for {age(age_s)}.",
        action="Check the vendor, or raise GATEWAY_WORKERS.",
        page="tasks",
        button="View",
        href="/admin/tasks?status=queued",
    )


def _chain(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield an unreachable chain. `machine_conditions` compares the clock with its newest block."""
    head = facts.head
    if head.problem is not None or head.value is None:
        # Otherwise a failed check reports it.
        if facts.checks is None:
            yield _rpc(
                "The chain does not answer", head.problem or "No RPC endpoint answers.", "bad"
            )
        return


def _rpc(title: str, text: str, level: Level) -> Condition:
    return Condition(
        condition="rpc",
        level=level,
        title=title,
        text=text,
        action="Set another endpoint in GATEWAY_RPC_URLS.",
        page="system",
        button="Details",
        href="/admin/system#rpc",
    )


def _backup(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    copies = facts.machine.backups
    if copies is not None and copies.is_servers:
        return
    if facts.backup_at is None:
        title = "No backup yet"
        text = (
            "The database has no backup. If the volume is lost, the records of payments and "
            "refunds are lost too."
        )
        level: Level = "warn" if facts.has_backup_url else "note"
    elif facts.at - facts.backup_at > limits.backup_age_s:
        title = f"The newest backup is {age(facts.at - facts.backup_at)} old"
        text = "A restore now would lose every sale since."
        level = "bad"
    else:
        return
    yield Condition(
        condition="backup",
        level=level,
        title=title,
        text=text,
        action=(
            "Find out why no backup is made." if facts.has_backup_url else "Set GATEWAY_BACKUP_URL."
        ),
        page="system",
        button="View backups" if facts.has_backup_url else "Set up backups",
        href="/admin/system#backups",
    )


def _of_parts(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    for one in facts.of_parts:
        yield Condition(
            condition=one.name,
            subject=one.subject,
            level=one.level,
            title=one.title,
            text=one.text,
            action=one.action,
            page="system",
            button=one.button,
            href=one.href,
            raises_alarm=one.raises_alarm,
        )


_RULES: tuple[Rule, ...] = (
    _checks,
    _chain,
    _refunds_failed,
    _gas,
    _refund_key,
    _open_payments,
    _queue,
    _refunds_undecided,
    _backup,
    *ENDPOINT_RULES,
    *MACHINE_RULES,
    *MOVEMENT_RULES,
    *SETTINGS_RULES,
    _of_parts,
)
