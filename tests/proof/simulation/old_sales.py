"""Buyers of a shop whose database was lost, in the second in which its new one was made.

Their transfers have bought something that the new database does not know, so they buy nothing.
"""

import asyncio
import random
import sqlite3

import attrs

from tests.proof.simulation import market
from tests.proof.simulation.chain import SimulatedChain
from tests.proof.simulation.ground import Ask
from tests.proof.simulation.paying import SignedHeader, buy_direct, buy_x402, key_of
from tests.proof.simulation.people import RICH_UNITS, Town
from tests.proof.simulation.third_parties import THIRD_PARTY
from tests.proof.simulation.token import Call, transfer_call
from tests.proof.simulation.world import EPOCH

_SHARE = 0.1  # of the histories
_BORN_S = 9.05  # ago: the last 50 ms of a second, which is after all its blocks but before the next
_EARLIER_S = (0.2, 0.9)  # before that: in the same second
_TRIES = 3


@attrs.define
class OldBuyer:
    """Presents a transfer or an authorization that the lost database has sold."""

    town: Town
    name: str
    tx_hash: str
    signed: SignedHeader | None  # None: it was a plain transfer
    accepted: list[tuple[str, str]] = attrs.field(factory=list)  # (task, prompt) of each 200

    async def live(self) -> None:
        dice = self.town.world.dice
        for _ in range(_TRIES):
            await asyncio.sleep(dice.uniform(0.5, 6.0))
            answer = await self.town.ask(self._request())
            if answer.task_id is not None:
                self.accepted.append((answer.task_id, self.name))

    def _request(self) -> Ask:
        if self.signed is not None and self.town.world.dice.random() < 0.5:
            return buy_x402(self.signed.header, self.name)
        return buy_direct(self.tx_hash, self.name, None)


def draw(town: Town, seed: int, db: sqlite3.Connection) -> list[OldBuyer]:
    """Return the old buyers, drawn separately, and date the new database; most have none."""
    dice = random.Random(f"old sales {seed}")
    if dice.random() >= _SHARE:
        return []
    db.execute("INSERT INTO meta (key, value) VALUES ('born_at', ?)", (str(EPOCH - _BORN_S),))
    return [_sell(town, "old buyer", _BORN_S + dice.uniform(*_EARLIER_S), dice.random() < 0.5)]


def _sell(town: Town, name: str, age_s: float, is_signed: bool) -> OldBuyer:
    chain: SimulatedChain = town.chain
    address = key_of(name)[1]
    chain.fund(address, RICH_UNITS)
    signed = town.sign(name, seconds=600.0, valid_after=0) if is_signed else None
    call = (
        Call(THIRD_PARTY, signed.data)
        if signed is not None
        else transfer_call(address, market.WALLET, market.PRICE_UNITS)
    )
    transaction = chain.new_transaction(call.caller, call)
    chain.sent[transaction.hash] = "lost database"
    chain.mine_before(age_s, transaction)
    return OldBuyer(town, name, transaction.hash, signed)


def check(buyers: list[OldBuyer], rows: list) -> list[str]:
    """Return a violation for each old transfer that has bought a second task."""
    old = {buyer.tx_hash for buyer in buyers}
    return [
        f"SOLD_AGAIN {row}"
        for row in rows
        if row.runs and row.transfer is not None and row.transfer.tx_hash in old
    ]
