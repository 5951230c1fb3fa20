"""Conditions of machine, clock, pace of the chain, backups, logins and unused transfers."""

from collections.abc import Callable, Iterator

from gateway.chain.pace import describe_pace, paces_differ
from gateway_operator.desk.condition import Condition, Level, Thresholds
from gateway_operator.desk.facts import Facts
from gateway_operator.desk.wording import age, counted, usdc

_BACKUPS_OVERDUE = 2
_DRILL = "Run `gateway drill`: it reports the problem."


def _clock(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    """x402 payments are refused if clock and chain differ."""
    block, seen_at = facts.head.value, facts.head.at
    if block is None or seen_at is None or facts.head.problem is not None:
        return
    ahead_s = seen_at - block.timestamp
    if abs(ahead_s) <= limits.clock_soon_s:
        return
    how = "ahead of" if ahead_s > 0 else "behind"
    yield Condition(
        condition="clock",
        level="bad" if abs(ahead_s) > limits.clock_urgent_s else "warn",
        title=f"The clock is {age(abs(ahead_s))} {how} the newest block",
        text=(
            "x402 payments are refused while it is wrong."
            f"{' The RPC endpoint may also be behind.' if ahead_s > 0 else ''}"
        ),
        action="Synchronize the machine's clock by NTP.",
        page="system",
        button="Details",
        href="/admin/system#rpc",
    )


def _pace(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield a change of the chain's pace, until the new one counts as usual."""
    pace = facts.pace
    if pace is None or not paces_differ(pace.now_s, pace.usual_s):
        return
    yield Condition(
        condition="pace",
        level="warn",
        title=f"{describe_pace(pace.now_s).capitalize()}, not {describe_pace(pace.usual_s)}",
        text=(
            "GATEWAY_CONFIRMATIONS and the limits of RPC plans count blocks, so they now cover "
            f"{pace.now_s / pace.usual_s:.0%} of the time. This notice ends after a day."
        ),
        action="Run `gateway check`, and set GATEWAY_CONFIRMATIONS for the new pace.",
        page="system",
        button="Details",
        href="/admin/system#rpc",
    )


def _dead_nodes(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    """Yield nodes that ended without a regular stop."""
    for node in facts.machine.nodes:
        silent_s = facts.at - node.seen_at
        if node.is_stopped or silent_s < limits.node_soon_s:
            continue
        yield Condition(
            condition="node",
            subject=node.name,
            level="warn",
            title=f"Node {node.name} has not been seen for {age(silent_s)}",
            text="It ended without a regular stop. Other nodes with its role do its work.",
            action="Start it again. A node that is gone for good disappears after a day.",
            page="system",
            button="View the nodes",
            href="/admin/system#nodes",
        )


def _rpc_endpoints(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    for place, seconds in facts.machine.failing_rpc.items():
        if seconds < limits.rpc_endpoint_soon_s:
            continue
        yield Condition(
            condition="rpc_endpoint",
            subject=str(place),
            level="warn",
            title=f"RPC endpoint {place} has not answered for {age(seconds)}",
            text="The other endpoints do its work. If none is left, nothing paid is sold.",
            action="Replace it in GATEWAY_RPC_URLS.",
            page="system",
            button="Details",
            href="/admin/system#rpc",
        )


def _disk(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    """Yield a disk that fills up; below the floor, a failed check reports it."""
    disk, lasts_s = facts.machine.disk, facts.machine.disk_lasts_s
    if disk is None or disk.problem is not None:
        return
    fills_soon = lasts_s is not None and lasts_s < limits.disk_soon_s
    if not disk.is_low and not fills_soon:
        return
    left, floor = f"{disk.free_bytes // 10**6:,} MB", f"{disk.floor_bytes // 10**6:,} MB"
    if disk.has_few_inodes:
        left, floor = f"{disk.free_inodes:,} inodes", f"{disk.floor_inodes:,}"
    pace = f" At the pace of the last day that is in {age(lasts_s)}." if lasts_s is not None else ""
    yield Condition(
        condition="disk",
        level="warn",
        title=f"The disk has {left} left",
        text=f"With less than {floor} nothing is sold.{pace}",
        action="Free some space, or enlarge the volume.",
        page="system",
        button="Details",
        href="/admin/system#disk",
    )


def _blocked(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    for plugin, seconds in facts.machine.blocked.items():
        if seconds <= limits.blocked_soon_s:
            continue
        yield Condition(
            condition="blocked",
            subject=plugin,
            level="bad" if seconds > limits.blocked_urgent_s else "warn",
            title=f"{plugin} blocked the gateway for {age(seconds)}",
            text="All requests had to wait. The log event loop.blocked names the code.",
            action=f"Remove {plugin}, or report the log line to its author.",
            page="system",
            button="Details",
            href="/admin/system",
        )


def _refused_logins(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    count = facts.machine.refused_logins
    if count < limits.logins_soon:
        return
    yield Condition(
        condition="logins",
        level="warn",
        title=f"{counted(count, 'login')} refused within an hour",
        text="Somebody may be guessing the password. The attempts per address are limited.",
        action="Change the password if it may be known.",
        page="system",
        button="View the addresses",
        href="/admin/access",
    )


def _new_logins(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    for login in facts.machine.new_logins:
        yield Condition(
            condition="login",
            subject=login.actor.name,
            level="note",
            title="A login from an unknown browser",
            text=f"From {login.actor.address}.",
            action="If it was not you, end the session on the page Access and change the password.",
            page="system",
            button="It was me",
            href=f"/admin/access/mine?login={login.id}",
        )


def _late_backups(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    """Yield an overdue backup, and a failed or old drill."""
    known = facts.machine.backups
    if known is None or not known.is_on:
        return
    is_overdue = known.age_s is not None and known.age_s > _BACKUPS_OVERDUE * known.every_s
    if is_overdue and known.age_s is not None and known.age_s <= limits.backup_age_s:
        why = known.failed.error if known.failed is not None else None
        yield _about_backups(
            "backup_late",
            f"The newest backup is {age(known.age_s)} old",
            f"One is made every {age(known.every_s)}. {why or ''}".rstrip(),
            "Check that the gateway can write to GATEWAY_BACKUP_URL.",
            "warn",
        )
    yield from _drills(facts, limits)


def _drills(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    known = facts.machine.backups
    if known is None or known.drill is None:
        return
    if known.drill.error is not None:
        words = f"A restore may not work: {known.drill.error}"
        yield _about_backups("drill", "The newest restore drill failed", words, _DRILL, "bad")
    elif known.drill_age_s is not None and known.drill_age_s > limits.drill_age_s:
        title = f"The newest restore drill is {age(known.drill_age_s)} old"
        yield _about_backups("drill", title, "A restore may not work.", _DRILL, "warn")


def _about_backups(condition: str, title: str, text: str, action: str, level: Level) -> Condition:
    return Condition(
        condition=condition,
        level=level,
        title=title,
        text=text,
        action=action,
        page="system",
        button="View backups",
        href="/admin/system#backups",
    )


def _unused(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    waiting = [
        facts.at - at for at in facts.machine.unused or () if facts.at - at > limits.unused_soon_s
    ]
    if not waiting:
        return
    yield Condition(
        condition="unclaimed",
        level="bad" if max(waiting) > limits.unused_urgent_s else "warn",
        title=f"{counted(len(waiting), 'transfer')} to the wallet paid for nothing",
        text=f"The oldest came {age(max(waiting))} ago. A buyer may be waiting.",
        action="Send the money back, or start the buyer's task.",
        page="payments",
        button="View",
        href="/admin/payments#unclaimed",
    )


def _lost(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield transfers that only a refund can help, each with its sender. `_unused` alarms."""
    can_refund = facts.key("refund") is not None
    for one in facts.machine.lost:
        sent = one.transfer
        place = f"{sent.tx_hash}:{sent.log_index}"
        yield Condition(
            condition="unused_transfer",
            subject=place,
            level="warn",
            title=f"{usdc(sent.amount_units)} USDC came {age(facts.at - one.at)} ago for nothing",
            text=f"{sent.sender} sent it, and no request used its hash within a day.",
            action=(
                "Give it back, unless the sender is an exchange."
                if can_refund
                else "Send it back with the wallet's own key, then mark it as seen."
            ),
            page="payments",
            button="Refund" if can_refund else "View",
            href=(
                f"/admin/payments/refund?transfer={place}"
                if can_refund
                else "/admin/payments#unclaimed"
            ),
            # It names a payer, which no message does.
            raises_alarm=False,
        )


MACHINE_RULES: tuple[Callable[[Facts, Thresholds], Iterator[Condition]], ...] = (
    _dead_nodes,
    _rpc_endpoints,
    _clock,
    _pace,
    _disk,
    _blocked,
    _refused_logins,
    _new_logins,
    _late_backups,
    _unused,
    _lost,
)
