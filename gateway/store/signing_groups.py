"""T2 of several payments in one write, as for SQLite's group commit.

On PostgreSQL a key's lock is held over a round trip and a flush to the disk. One payment at a time
would limit a key to a hundred payments a second; a group holds the lock once.
"""

from bisect import insort
from collections.abc import Sequence

import attrs

from gateway.contracts import SignedTransaction, UnsignedTransaction
from gateway.domain import PaymentState
from gateway.store.nonces import (
    find_sent,
    find_state,
    find_used,
    insert_transaction,
    is_open,
    newest_unmined,
    sign_next,
)
from gateway.store.sql import Connection, Row, locked


@attrs.frozen
class AskedTransaction:
    """The arguments of one `begin_settling`."""

    payment_id: int
    transaction: UnsignedTransaction
    now: float


@locked(lambda asked: [f"signer:{asked[0].transaction.signer}"])
def begin_settling_each(
    db: Connection, asked: Sequence[AskedTransaction]
) -> list[SignedTransaction | Exception]:
    """Do what `begin_settling` does for each payment, all with the same key.

    Returns its result, or its error, which does not concern the others.
    """
    facts = []
    for one in asked:
        sent = find_sent(db, one.payment_id, one.transaction.signers)
        facts.append((one, find_state(db, one.payment_id), sent))
    first = asked[0].transaction
    found = find_used(db, first.signer, min(one.transaction.chain_nonce for one in asked))
    used = [row[0] for row in found]
    # A payment may be asked for twice, by two submits. They share the transaction, but no error.
    signed: dict[int, SignedTransaction] = {}
    outcomes: list[SignedTransaction | Exception] = []
    for one, state, sent in facts:
        outcome: SignedTransaction | Exception | None = signed.get(one.payment_id)
        if outcome is None:
            outcome = _begin(db, one, sent.fetchall(), used, is_open=is_open(state))
        if isinstance(outcome, SignedTransaction):
            signed[one.payment_id] = outcome
        outcomes.append(outcome)
    return outcomes


def _begin(
    db: Connection, one: AskedTransaction, sent: Sequence[Row], used: list[int], *, is_open: bool
) -> SignedTransaction | Exception:
    if not is_open:
        return RuntimeError(f"payment {one.payment_id} is closed")
    signed = newest_unmined(sent)
    if signed is None:
        try:
            signed = sign_next(one.payment_id, one.transaction, sent, used)
        except Exception as error:  # noqa: BLE001 - the outcome of this payment
            return error
        insort(used, signed.nonce)
        insert_transaction(db, one.payment_id, signed)
    db.execute(
        "UPDATE payments SET state = ?, updated_at = ? WHERE id = ?",
        (PaymentState.SETTLING, one.now, one.payment_id),
    )
    return signed
