"""Buyers who pay by a QR code: a transfer of an amount that is reserved for their key alone.

Some pay an amount that is another's, and some pay when theirs is not reserved any more.
"""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import attrs

from gateway.running.gateway import Gateway
from gateway.store.reserved_amounts import ReservedAmount, holder_of
from tests.proof.simulation import market
from tests.proof.simulation.ground import Ground
from tests.proof.simulation.people import DirectPayer, Town
from tests.proof.simulation.token import transfer_call

_SHARE = 0.12  # of the histories
_RESERVED_S = 6_000.0  # longer than a history
_SHORT_S = 8.0  # for who pays late
_MOST_ABOVE = 999
_TRIES = 6


@attrs.define
class CodePayer(DirectPayer):
    """Reserves an amount, transfers it, and buys with its key, without a signature."""

    above: int = 1  # units above the price, of the first amount that is asked for
    is_late: bool = False
    reserved: ReservedAmount | None = None

    async def live(self) -> None:
        await asyncio.sleep(self.town.world.dice.uniform(3.5, 6.0))
        for _ in range(_TRIES):
            await self.town.ask(self._reserve)
            if self.reserved is not None:
                break
            await asyncio.sleep(1.0)
        if self.reserved is None:
            return
        if self.is_late:
            # By the slowest clock of the gateway.
            await asyncio.sleep(max(0.0, self.reserved.ends_at + 2.5 - self.town.world.now()))
        await DirectPayer.live(self)

    async def _reserve(self, services: Gateway) -> Any:
        """Reserve as the page does, with an amount from the history's seed."""
        now, holder = services.now(), holder_of(str(self.idempotency_key))
        ends_at = now + (_SHORT_S if self.is_late else _RESERVED_S)
        offers = [
            ReservedAmount(
                units=market.PRICE_UNITS + self.above + n,
                from_block=0,
                pay_by=ends_at,
                ends_at=ends_at,
            )
            for n in range(3)
        ]
        known = await services.store.find_amounts(holder, now)
        found = known[0] if known else await services.store.reserve_amount(holder, offers, now)
        self.reserved = found or self.reserved
        return SimpleNamespace(task=SimpleNamespace(id=None))

    def _transfer(self) -> None:
        assert self.reserved is not None
        self.units = self.reserved.units
        self.town.world.note(f"{self.name} pays {self.units}, late: {self.is_late}")
        call = transfer_call(self.address, market.WALLET, self.units)
        self.transaction = self.town.publish(self.name, call, is_sticky=True)


@attrs.define
class WrongPayer(DirectPayer):
    """Transfers the amount that is reserved for another, by mistake or to get his task."""

    other: CodePayer | None = None

    async def live(self) -> None:
        assert self.other is not None
        await asyncio.sleep(self.town.world.dice.uniform(7.0, 12.0))
        if self.other.reserved is not None:
            await DirectPayer.live(self)

    def _transfer(self) -> None:
        assert self.other is not None
        assert self.other.reserved is not None
        self.units = self.other.reserved.units
        call = transfer_call(self.address, market.WALLET, self.units)
        self.transaction = self.town.publish(self.name, call, is_sticky=True)


def draw(town: Town, seed: int) -> list[DirectPayer]:
    """Return these payers, drawn separately; most histories have none."""
    dice = random.Random(f"keys of amounts {seed}")
    if dice.random() >= _SHARE:
        return []
    payers = [
        CodePayer(
            town,
            f"code {n}",
            idempotency_key=f"code key {n}",
            proves=False,
            above=dice.randint(1, _MOST_ABOVE),
            is_late=dice.random() < 0.25,
        )
        for n in range(dice.randint(1, 2))
    ]
    wrong = []
    if dice.random() < 0.5:
        key, proves = dice.choice((None, "wrong key")), dice.random() < 0.5
        wrong.append(
            WrongPayer(town, "wrong payer", idempotency_key=key, proves=proves, other=payers[0])
        )
    return [*payers, *wrong]


def owed(payers: list[DirectPayer]) -> list[DirectPayer]:
    """Return those whose transfer the gateway must take."""
    paid = [one for one in payers if one.transaction is not None]
    return [one for one in paid if isinstance(one, CodePayer) or one.proves]


def check(ground: Ground, payers: list[DirectPayer], rows: list[Any]) -> list[str]:
    """A reserved amount buys for its key, or for its sender, who has signed."""
    reserved = {
        one.reserved.units: (one, one.reserved)
        for one in payers
        if isinstance(one, CodePayer) and one.reserved is not None
    }
    provers = {one.address: one.name for one in payers if one.proves}
    found = []
    for row in rows:
        if not row.runs or row.seen is None or row.seen.units not in reserved:
            continue
        holder, amount = reserved[row.seen.units]
        (accepted_at,) = ground.db.execute(
            "SELECT created_at FROM tasks WHERE id = ?", (row.task_id,)
        ).fetchone()
        is_own = row.prompt in (holder.name, provers.get(row.seen.sender))
        if accepted_at < amount.ends_at and not is_own:
            found.append(f"STOLEN_AMOUNT {amount.units} of {holder.name} by {row.prompt}")
    return found
