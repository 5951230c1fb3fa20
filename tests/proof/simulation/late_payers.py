"""Payers whose authorization a third party sent long ago, and who present it only now.

Their shop is old, so its database cannot have lost a task for the transfer: it owes one.
"""

import random
import sqlite3

import attrs

from tests.proof.simulation.chain import SimulatedChain
from tests.proof.simulation.paying import SignedHeader
from tests.proof.simulation.people import RICH_UNITS, Payer, Town
from tests.proof.simulation.third_parties import THIRD_PARTY
from tests.proof.simulation.token import Call, cancel_call
from tests.proof.simulation.world import EPOCH

_SHARE = 0.12  # of the histories
_OPENED_S = 4_000.0  # ago, when the shop opened
_LONGEST_S = 3_900  # an authorization may be valid for so long
_AGES_S = ((5.0, 200.0), (200.0, 3_600.0))  # ago, when a third party used the nonce


def draw(town: Town, seed: int) -> list[Payer]:
    """Return the late payers, drawn separately; most histories have none."""
    dice = random.Random(f"late {seed}")
    if dice.random() >= _SHARE:
        return []
    payers = [
        LatePayer(
            town, f"late {n}", leaks=True, idempotency_key=dice.choice((None, f"late key {n}"))
        )
        for n in range(dice.randint(1, 2))
    ]
    ages = sorted((dice.uniform(*dice.choice(_AGES_S)) for _ in payers), reverse=True)
    for payer, age_s in zip(payers, ages, strict=True):
        payer.prepare(age_s, is_cancelled=dice.random() < 0.2)
    return list(payers)


def open_long_ago(db: sqlite3.Connection) -> None:
    """Make the shop older than every late payer's transfer."""
    db.execute("INSERT INTO meta (key, value) VALUES ('born_at', ?)", (str(EPOCH - _OPENED_S),))


@attrs.define
class LatePayer(Payer):
    """Begins with the old authorization, and then pays like everybody."""

    old: list[SignedHeader] = attrs.field(factory=list)

    def prepare(self, age_s: float, *, is_cancelled: bool) -> None:
        """Sign, and let a third party or the payer use the nonce, that long before the history."""
        chain = self.town.chain
        chain.fund(self.address, RICH_UNITS)
        signed = self.town.sign(self.name, seconds=_LONGEST_S - age_s - 2, valid_after=0)
        self.old.append(signed)
        call = Call(THIRD_PARTY, signed.data)
        if is_cancelled:
            call = cancel_call(signed.authorization)
        _mine(chain, age_s, call)

    def _sign(self) -> None:
        if self.old:
            self.headers.append(self.old.pop())
        else:
            Payer._sign(self)


def _mine(chain: SimulatedChain, age_s: float, call: Call) -> None:
    transaction = chain.new_transaction(call.caller, call)
    chain.sent[transaction.hash] = "third party"
    chain.mine_before(age_s, transaction)
