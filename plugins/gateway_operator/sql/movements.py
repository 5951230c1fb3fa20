"""Explains USDC that moved into or out of the gateway's addresses, by the database's records."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import attrs

from gateway.domain import MinedTransfer
from gateway.store.sql import Connection, placeholders
from gateway_operator.sql import seen_transfers
from gateway_operator.sql.payment_lists import unused
from gateway_operator.sql.seen_transfers import SeenTransfer

Kind = Literal[
    # Explained by a record, by the operator's mark, or by both ends being the gateway's.
    "sale",
    "refund",
    "seen",
    "internal",
    # Left an address, and no record says why.
    "unbooked",
    # The same, or unused, but older than this database: a restored copy may have forgotten why.
    "forgotten",
    # Came to the wallet and bought nothing; to the refund key; to a settlement key.
    "unused",
    "top_up",
    "stray",
]


_BATCH = 500
EXPLAINED = ("sale", "refund", "seen", "internal")


@attrs.frozen(kw_only=True)
class Movement:
    """A transfer from or to one of the gateway's addresses, and its explanation."""

    transfer: MinedTransfer
    # The gateway's address, and its role: `wallet`, `refund` or `settlement`.
    address: str
    role: str
    kind: Kind

    @property
    def place(self) -> tuple[str, int]:
        """The transaction's hash, and the log's index."""
        return self.transfer.tx_hash, self.transfer.log_index

    @property
    def is_out(self) -> bool:
        """Whether it left the gateway's address."""
        return self.transfer.sender == self.address

    def is_explained_by(self, mark: SeenTransfer | None) -> bool:
        """Whether an operator's mark of this transfer, if any, explains it."""
        return mark is not None and (mark.books_out or not self.is_out)


def explain(
    db: Connection,
    transfers: Sequence[MinedTransfer],
    roles: Mapping[str, str],
    *,
    first_block: int = 0,
) -> list[Movement]:
    """Return each transfer with its explanation.

    `roles` are the gateway's addresses in lower case, each with its role. This database knows
    nothing of blocks before `first_block`.
    """
    if not transfers:
        return []
    to_wallet = [one for one in transfers if roles.get(one.recipient) == "wallet"]
    bought_nothing = {_place(one) for one in unused(db, to_wallet)}
    refunds = _Refunds(db, {one.tx_hash for one in transfers if one.sender in roles})
    found = []
    for one in transfers:
        is_sale = roles.get(one.recipient) == "wallet" and _place(one) not in bought_nothing
        kind = "sale" if is_sale else _explain(one, roles, refunds)
        is_in = is_sale or one.sender not in roles
        address = one.recipient if is_in else one.sender
        found.append(Movement(transfer=one, address=address, role=roles[address], kind=kind))
    return _apply_marks(db, found, first_block)


def _explain(one: MinedTransfer, roles: Mapping[str, str], refunds: "_Refunds") -> Kind:
    sender, recipient = roles.get(one.sender), roles.get(one.recipient)
    if sender is not None and recipient is not None:
        return "internal"
    if sender is not None:
        return "refund" if refunds.take(one) else "unbooked"
    if recipient == "wallet":
        return "unused"
    return "top_up" if recipient == "refund" else "stray"


def _apply_marks(db: Connection, found: list[Movement], first_block: int) -> list[Movement]:
    """Replace the kind of what an operator has marked, and of what is older than the database."""
    hashes = sorted({one.transfer.tx_hash for one in found if one.kind not in EXPLAINED})
    marks = dict[tuple[str, int], SeenTransfer]()
    for some in _batches(hashes):
        marks |= seen_transfers.find(db, some)

    def of(one: Movement) -> Movement:
        if one.kind in EXPLAINED:
            return one
        if one.is_explained_by(marks.get(one.place)):
            return attrs.evolve(one, kind="seen")
        is_older = one.transfer.block_number < first_block
        return attrs.evolve(one, kind="forgotten") if is_older else one

    return [of(one) for one in found]


def _batches(hashes: Sequence[str]) -> list[Sequence[str]]:
    # Databases limit the parameters of a statement.
    return [hashes[start : start + _BATCH] for start in range(0, len(hashes), _BATCH)]


def _place(one: MinedTransfer) -> tuple[str, int]:
    return one.tx_hash, one.log_index


class _Refunds:
    """The refunds that these transfers may be. Each explains one transfer."""

    def __init__(self, db: Connection, hashes: Collection[str]) -> None:
        select = """SELECT tx_hash, lower(sender) AS sender, lower(recipient) AS recipient,
            amount_units FROM refunds WHERE sender IS NOT NULL AND tx_hash"""
        # A refund that was signed and not seen yet has no transaction.
        rows = list(db.execute(f"{select} IS NULL")) if hashes else []
        for some in _batches(sorted(hashes)):
            rows += db.execute(f"{select} IN ({placeholders(some)})", tuple(some))
        self._left = Counter(
            (row["tx_hash"], row["sender"], row["recipient"], row["amount_units"]) for row in rows
        )

    def take(self, one: MinedTransfer) -> bool:
        """Whether a refund explains the transfer, and no other transfer yet."""
        for tx_hash in (one.tx_hash, None):
            key = (tx_hash, one.sender, one.recipient, one.amount_units)
            if self._left[key]:
                self._left[key] -= 1
                return True
        return False
