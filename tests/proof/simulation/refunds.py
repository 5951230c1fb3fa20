"""The invariants of refunds: each is paid exactly once, or still due with a reason."""

from collections import Counter

from gateway.domain.eip3009 import TRANSFER_TOPIC, topic
from tests.proof.simulation.ground import Ground
from tests.proof.simulation.market import REFUNDER
from tests.proof.simulation.token import TOKEN

_UNLIMITED = 2**62
_OWED = "('refund_due', 'refunding', 'refunded', 'refund_failed')"


def waiting(ground: Ground) -> list[str]:
    """Return the refunds that are in progress or not yet processed.

    A refund that was mined in vain stays in progress, with a reason, while the key lacks the money.
    The key also lacks it if the refund took it, and the gateway has not read that yet.
    """
    holds = ground.chain.state.balances.get(REFUNDER, 0)
    if _sent(ground):
        holds = _UNLIMITED
    is_automatic = ground.terms.refunds == "automatic"
    rows = ground.db.execute(
        """SELECT p.id, p.state FROM payments p JOIN refunds r ON r.payment_id = p.id
           WHERE (p.state = 'refunding' AND (r.problem IS NULL OR r.amount_units <= ?))
              OR (? AND p.state = 'refund_due' AND p.payer_proven AND r.problem IS NULL)""",
        (holds, is_automatic),
    )
    return [f"REFUND_STUCK payment {row['id']} is {row['state']}" for row in rows]


def check(ground: Ground) -> list[str]:
    return [*waiting(ground), *_amounts(ground), *_sent(ground)]


def _amounts(ground: Ground) -> list[str]:
    """The buyer of a failed task is due exactly the amount that he paid."""
    wrong = ground.db.execute(
        f"""SELECT t.id FROM tasks t JOIN payments p ON p.id = t.payment_id
            LEFT JOIN refunds r ON r.payment_id = p.id
            LEFT JOIN method_proofs m ON m.payment_id = p.id
            WHERE (t.status = 'failed') != (r.payment_id IS NOT NULL)
               OR (t.status = 'failed') != (p.state IN {_OWED})
               OR r.amount_units != p.paid_units OR r.recipient != coalesce(m.refund_to, p.payer)"""
    )
    return [f"REFUND_WRONG task {row[0]}" for row in wrong]


def _sent(ground: Ground) -> list[str]:
    """The refund key's transfers match the recorded refunds, one by one."""
    sent: Counter = Counter()
    for receipt in ground.chain.state.mined.values():
        for log in receipt.logs:
            is_transfer = log.address == TOKEN and log.topics[0] == TRANSFER_TOPIC
            if is_transfer and log.topics[1] == topic(REFUNDER) and any(log.data):
                units = int.from_bytes(log.data, "big")
                sent["0x" + log.topics[2][-40:], units, receipt.tx_hash] += 1
    transfers = Counter(
        (row["recipient"], row["amount_units"], row["tx_hash"])
        for row in ground.db.execute(
            """SELECT r.* FROM refunds r JOIN payments p ON p.id = r.payment_id
               WHERE p.state = 'refunded'"""
        )
    )
    return [
        f"REFUNDED_WRONG {key[1]} to {key[0]} by {key[2]}: {sent[key]} sent, {transfers[key]} told"
        for key in sent | transfers
        if sent[key] != transfers[key]
    ]
