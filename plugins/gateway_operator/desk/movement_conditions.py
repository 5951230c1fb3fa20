"""Conditions of USDC that moved without a record, and of a restored database."""

from collections.abc import Iterator, Sequence

from gateway_operator.desk.condition import Condition, Thresholds
from gateway_operator.desk.facts import Facts
from gateway_operator.desk.wording import age, counted, sentence, usdc
from gateway_operator.movements import OpenMovement
from gateway_operator.sql.movements import Movement
from gateway_operator.sql.seen_transfers import SeenTransfer

ROLE_WORDS = {"wallet": "the wallet", "refund": "a refund key", "settlement": "a settlement key"}
_PAGE = "/admin/payments#moved"
_UNREAD_SOON_S = 120.0
_UNREAD_URGENT_S = 900.0


def describe_kind(one: Movement) -> str:
    """Return the name of a movement, without a full stop."""
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


def describe_mark(one: Movement, mark: SeenTransfer) -> str:
    """Return what an operator's mark explains, and why, without a full stop."""
    sent, verb = one.transfer, "left" if one.is_out else "came to"
    return (
        f"{usdc(sent.amount_units)} USDC {verb} {ROLE_WORDS[one.role]}, transaction "
        f"{sent.tx_hash}, log {sent.log_index}, {mark.actor}: {mark.reason}"
    )


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


def _unread(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield that the newest blocks are not read, unless a failed check says that no chain is."""
    unread_s, problem = facts.machine.movements_unread_s, facts.machine.movements_problem
    is_known = any(one.name == "rpc" and not one.ok for one in facts.checks or ())
    if unread_s is None or unread_s < _UNREAD_SOON_S or is_known:
        return
    yield Condition(
        condition="movements_unread",
        level="bad" if unread_s >= _UNREAD_URGENT_S else "warn",
        title=f"A theft would not show: transfers were not read for {age(unread_s)}",
        text=sentence(problem or "The search for them has not ended yet"),
        action="Name another endpoint in GATEWAY_RPC_URLS that answers eth_getLogs.",
        page="payments",
        button="View",
        href=_PAGE,
    )


def _came(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield USDC that came to a key, to which no money is owed.

    Anyone can send dust, so amounts below the lowest price raise no alarm.
    """
    least = min((one.price_units for one in facts.endpoints), default=0)
    for (address, role), found in _grouped(facts.machine.moved, "stray", "top_up").items():
        is_refund = role == "refund"
        is_dust = all(one.movement.transfer.amount_units < least for one in found)
        yield Condition(
            condition="moved_in",
            subject=address,
            level="note" if is_refund or is_dust else "warn",
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
            raises_alarm=not (is_refund or is_dust),
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


MOVEMENT_RULES = (_left, _unread, _came, _restored)
