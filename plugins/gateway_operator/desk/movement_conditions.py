"""Conditions of USDC that moved without a record, and of a restored database."""

from collections.abc import Iterator, Sequence

from gateway_operator.desk.condition import Condition, Thresholds
from gateway_operator.desk.facts import Facts
from gateway_operator.desk.wording import age, counted, usdc
from gateway_operator.movements import OpenMovement
from gateway_operator.sql.movements import Movement

ROLE_WORDS = {"wallet": "the wallet", "refund": "a refund key", "settlement": "a settlement key"}
_PAGE = "/admin/payments#moved"


def describe_kind(one: Movement) -> str:
    """Return what a movement is, without a full stop."""
    name = ROLE_WORDS[one.role]
    if one.kind == "unbooked":
        return f"Left {name} without a record"
    if one.kind == "forgotten":
        return f"{'Left' if one.is_out else 'Came to'} {name} before this database was made"
    return {
        "unused": "Unused",
        "top_up": "Topped up a refund key",
        "stray": "Came to a settlement key, which needs no USDC",
    }[one.kind]


def _left(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield each address that lost USDC for which there is no record."""
    for (address, role), found in _grouped(facts.machine.moved, "unbooked").items():
        key = {"refund": "GATEWAY_REFUND_KEY", "settlement": "GATEWAY_SETTLEMENT_KEY"}.get(role)
        replace = f" and replace {key}" if key else ""
        yield Condition(
            condition="unbooked",
            subject=address,
            level="bad",
            title=f"{_sum(found)} USDC left {ROLE_WORDS[role]} without a record",
            text=(
                f"{counted(len(found), 'transfer')} of {address}, the newest{_when(facts, found)}. "
                "Somebody else may have its private key."
            ),
            action=f'If it was you, press "It was me". Otherwise move the rest away{replace}.',
            page="payments",
            button="View",
            href=_PAGE,
        )


def _came(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield USDC that came to a key; nobody owes money to one."""
    for (address, role), found in _grouped(facts.machine.moved, "stray", "top_up").items():
        is_refund = role == "refund"
        yield Condition(
            condition="moved_in",
            subject=address,
            level="note" if is_refund else "warn",
            title=f"{_sum(found)} USDC came to {ROLE_WORDS[role]}",
            text=(
                f"{counted(len(found), 'transfer')} to {address}, the newest{_when(facts, found)}."
                + ("" if is_refund else " A settlement key needs no USDC: a buyer may have erred.")
            ),
            action=(
                'If you topped it up, press "It was me".'
                if is_refund
                else 'If it was you, press "It was me". Otherwise give it back.'
            ),
            page="payments",
            button="View",
            href=_PAGE,
            raises_alarm=not is_refund,
        )


def _restored(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield sales and transfers that the restored copy forgot, while they are not marked."""
    restored, sold = facts.machine.restored, facts.machine.forgotten
    moved = [one for one in facts.machine.moved if one.movement.kind == "forgotten"]
    if restored is None or not (sold or moved):
        return
    lost = []
    if sold:
        units = sum(one.transfer.amount_units for one in sold)
        lost.append(f"{counted(len(sold), 'payment')} of {usdc(units)} USDC")
    if moved:
        lost.append(f"{counted(len(moved), 'outgoing transfer')} of {_sum(moved)} USDC")
    yield Condition(
        condition="restored",
        level="warn",
        title=f"The restored copy forgot {' and '.join(lost)}",
        text=(
            f"The database was restored {age(facts.at - restored.at)} ago from {restored.subject}. "
            "It lacks the records of what happened after that copy was made."
        ),
        action="Compare each with the replaced database, and mark it as seen.",
        page="payments",
        button="View",
        href="/admin/payments#unclaimed" if sold else _PAGE,
    )


def _grouped(
    moved: Sequence[OpenMovement], *kinds: str
) -> dict[tuple[str, str], list[OpenMovement]]:
    found: dict[tuple[str, str], list[OpenMovement]] = {}
    for one in moved:
        if one.movement.kind in kinds:
            found.setdefault((one.movement.address, one.movement.role), []).append(one)
    return found


def _sum(found: Sequence[OpenMovement]) -> str:
    return usdc(sum(one.movement.transfer.amount_units for one in found))


def _when(facts: Facts, found: Sequence[OpenMovement]) -> str:
    times = [one.at for one in found if one.at is not None]
    return f" {age(facts.at - max(times))} ago" if times else ""


MOVEMENT_RULES = (_left, _came, _restored)
