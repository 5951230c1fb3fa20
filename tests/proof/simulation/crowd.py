"""For shops that settle in batches: many buyers at one moment, and some who spoil batches."""

import asyncio
import random
from collections import Counter

import attrs

from gateway.domain.eip3009 import BASE
from tests.proof.simulation.ground import Ground
from tests.proof.simulation.paying import SignedHeader, key_of
from tests.proof.simulation.people import RICH_UNITS, Payer, Town
from tests.proof.simulation.token import cancel_call, read_signed

_POLL_S = 0.25


def draw(town: Town, seed: int) -> tuple[list[Payer], list["Spoiler"]]:
    """Return the crowd, drawn separately, so that other histories stay unchanged."""
    dice = random.Random(f"crowd {seed}")
    moment = dice.uniform(3.5, 12.0)
    payers = [
        Payer(
            town,
            f"crowd {n}",
            leaks=False,
            idempotency_key=dice.choice((None, f"crowd key {n}")),
            comes_at=moment + dice.uniform(0.0, 0.3),
        )
        for n in range(dice.randint(3, 6))
    ]
    spoilers = [
        Spoiler(town, f"spoiler {n}", moment + dice.uniform(0.0, 0.2))
        for n in range(dice.choice((0, 0, 1, 2)))
    ]
    return payers, spoilers


@attrs.define
class Spoiler:
    """Cancels its own authorization once a transaction with it is pending, to burn our gas."""

    town: Town
    name: str
    comes_at: float
    accepted: list[tuple[str, str]] = attrs.field(factory=list)  # (task, prompt) of each 200

    @property
    def address(self) -> str:
        return key_of(self.name)[1]

    async def live(self) -> None:
        dice = self.town.world.dice
        self.town.chain.fund(self.address, RICH_UNITS)
        await asyncio.sleep(self.comes_at)
        for turn in range(dice.randint(2, 4)):
            signed = self.town.sign(self.name, seconds=dice.uniform(23.0, 35.0))
            ask = asyncio.ensure_future(
                self.town.buy_with(self.name, signed, f"{self.name} {turn}", self.accepted)
            )
            await self._cancel_when_sent(signed, ask)
            await ask
            await asyncio.sleep(dice.choice((2.0, 10.0)))

    async def _cancel_when_sent(self, signed: SignedHeader, ask: asyncio.Future[None]) -> None:
        chain = self.town.chain
        while not ask.done():
            await asyncio.sleep(_POLL_S)
            if any(
                chain.sent.get(waiting.hash) == "gateway"
                and any(call.data == signed.data for call in waiting.calls)
                for waiting in chain.pending
            ):
                cancel = cancel_call(signed.authorization)
                self.town.publish(self.name, cancel, is_sticky=True)
                chain.pending.insert(0, chain.pending.pop())
                return


def check(ground: Ground, spoilers: list[Spoiler]) -> list[str]:
    """A batch contains exactly its recorded payments, and its spoilers are barred.

    A payer may have as many payments open at once as were settled for him before.
    """
    addresses = {spoiler.address for spoiler in spoilers}
    used = ground.chain.state.used
    settled = Counter(payer for (payer, _), (_, has_paid) in used.items() if has_paid)
    burned: dict[str, set[str]] = {}
    found = []
    for tx_hash, calls in ground.chain.batches.items():
        found += _unwritten(ground, tx_hash, [read_signed(call.data) for call in calls])
    for timestamp, call in ground.chain.failed_calls:
        signed = read_signed(call.data)
        if signed.sender in addresses and timestamp < signed.valid_before:
            burned.setdefault(signed.sender, set()).add(signed.nonce)
    return found + [
        f"GAS_BURNED for {len(nonces)} payments of {payer}"
        for payer, nonces in burned.items()
        if len(nonces) > 1 + settled[payer]
    ]


def _unwritten(ground: Ground, tx_hash: str, calls: list) -> list[str]:
    """The payments recorded for a batch are those whose calls are in it."""
    written = {
        row["key"]
        for row in ground.db.execute(
            """SELECT c.key FROM sent_payments m JOIN claims c ON c.payment_id = m.payment_id
               WHERE m.tx_hash = ?""",
            (tx_hash,),
        )
    }
    sent = {BASE.authorization_key(signed.sender, signed.nonce) for signed in calls}
    return [] if written == sent else [f"UNWRITTEN_PAYMENT {sorted(sent ^ written)} of {tx_hash}"]
