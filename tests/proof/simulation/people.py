"""Honest customers: they sign or transfer, lose responses, retry as in http.md, and may give up."""

import asyncio
from typing import Any

import attrs

from tests.proof.simulation import market
from tests.proof.simulation.chain import SimulatedChain, Transaction
from tests.proof.simulation.ground import NOTHING, Answer, Ask
from tests.proof.simulation.life import Life
from tests.proof.simulation.paying import SignedHeader, buy_direct, buy_x402, key_of, sign
from tests.proof.simulation.token import OTHER_TOKEN, Call, transfer_call
from tests.proof.simulation.world import World

RICH_UNITS = 1_000_000
_MAX_SIGNATURES = 4  # a client gives up after so many payments for one request
_MAX_TRIES = 12
_TRIES_OF_A_HEADER = 6
_FLOOR_S = 3.5  # what is mined sooner may count as older than the database
TOOK_TOO_LONG = Answer(status=0, code="hung up")


@attrs.define
class Town:
    """The people's environment: the gateway, the chain, and leaked data."""

    world: World
    chain: SimulatedChain
    life: Life | None = None
    opened: asyncio.Event = attrs.field(factory=asyncio.Event)
    leaked: list[SignedHeader] = attrs.field(factory=list)  # others got hold of these
    signed: list[SignedHeader] = attrs.field(factory=list)  # everybody's
    customers: list[Any] = attrs.field(factory=list)  # of the bank of the vouchers

    async def ask(self, what: Ask, *, patience_s: float | None = None) -> Answer:
        """Send a request and wait for its response, unless the client disconnects first."""
        world, life = self.world, self.life
        await asyncio.sleep(world.dice.uniform(0.001, 0.05))
        if life is None or not life.is_open:
            return NOTHING
        pending = life.ask(what)
        if patience_s is not None:
            await asyncio.wait({pending}, timeout=patience_s)
            if not pending.done():
                life.hang_up(pending)
                return TOOK_TOO_LONG
        answer = await pending
        if world.strikes(world.odds.answer_lost, "answer lost"):
            return NOTHING
        return answer

    async def buy_with(
        self, name: str, signed: SignedHeader, prompt: str, accepted: list[tuple[str, str]]
    ) -> None:
        """Repeat a header until there is a definite response.

        `accepted` gets (task, prompt) of each 200.
        """
        for _ in range(_TRIES_OF_A_HEADER):
            answer = await self.ask(buy_x402(signed.header, prompt))
            self.world.note(f"{name} gets {answer.status} {answer.code}")
            if answer.task_id is not None:
                accepted.append((answer.task_id, prompt))
            if answer.status in (200, 402):
                return
            await asyncio.sleep(2.0)

    def sign(self, name: str, **terms: Any) -> SignedHeader:
        """Sign an authorization as a person."""
        self.signed.append(sign(self.chain, name, **terms))
        return self.signed[-1]

    def publish(self, who: str, *calls: Call, **more: Any) -> Transaction:
        """Send a transaction."""
        transaction = self.chain.new_transaction(calls[0].caller, *calls, **more)
        self.chain.add(transaction, who)
        return transaction


@attrs.define
class Payer:
    """Buys one picture by x402: repeats the header until a response, and signs again after a 402.

    With an Idempotency-Key he also signs again after a lost response.
    """

    town: Town
    name: str
    leaks: bool  # somebody reads along
    idempotency_key: str | None
    headers: list[SignedHeader] = attrs.field(factory=list)
    refused: list[tuple[SignedHeader, str | None]] = attrs.field(factory=list)  # by a 402
    accepted: list[tuple[str, str]] = attrs.field(factory=list)  # (task, prompt) of each 200
    gave_up: bool = False
    is_done: bool = False
    comes_at: float | None = None  # None: at any time

    @property
    def address(self) -> str:
        return key_of(self.name)[1]

    async def live(self) -> None:
        world = self.town.world
        self.town.chain.fund(self.address, RICH_UNITS)
        comes_at = self.comes_at
        if comes_at is None:
            comes_at = world.dice.uniform(_FLOOR_S, 14.0)
        await asyncio.sleep(comes_at)
        while not self.is_done and not self.gave_up and len(self.headers) < _MAX_SIGNATURES:
            self._sign()
            await self._pay(self.headers[-1])
        world.note(f"{self.name} is through: {len(self.accepted)} tasks, gave up {self.gave_up}")

    def _sign(self) -> None:
        world = self.town.world
        seconds = world.dice.uniform(21.0, world.dice.choice((26.0, 60.0)))
        signed = self.town.sign(self.name, seconds=seconds)
        self.headers.append(signed)
        if self.leaks:
            self.town.leaked.append(signed)
        world.note(f"{self.name} signs {signed.authorization.nonce[:10]}")

    async def _pay(self, signed: SignedHeader) -> None:
        """Repeat one header until the response is 200 or 402."""
        world = self.town.world
        for _ in range(_MAX_TRIES):
            hangs_up = not world.is_healed and world.dice.random() < 0.1
            patience_s = world.dice.uniform(0.0, 5.0) if hangs_up else None
            answer = await self.town.ask(
                buy_x402(signed.header, self.name, self.idempotency_key), patience_s=patience_s
            )
            world.note(f"{self.name} gets {answer.status} {answer.code} {answer.task_id}")
            if answer.status == 200 and answer.task_id is not None:
                self.accepted.append((answer.task_id, self.name))
                self.is_done = world.is_healed or world.dice.random() < 0.9  # else asks once more
            if answer.status == 402:
                self.refused.append((signed, answer.code))
            if self.is_done or answer.status == 402:
                return
            if world.dice.random() < 0.03:
                self.gave_up = True
                return
            if self.idempotency_key is not None and world.dice.random() < 0.3:
                return  # signs anew: the key sees to it that he pays once
            await asyncio.sleep(world.dice.choice((0.1, 1.0, 5.0, 30.0)))
        self.gave_up = True


@attrs.define
class DirectPayer:
    """Transfers first, then submits the hash until there is a definite response."""

    town: Town
    name: str
    idempotency_key: str | None
    proves: bool  # sends a payerSignature
    transaction: Transaction | None = None
    units: int = market.PRICE_UNITS
    accepted: list[tuple[str, str]] = attrs.field(factory=list)  # (task, prompt) of each 200
    last: Answer = NOTHING
    gave_up: bool = False
    has_lost: bool = False  # an answer of his got lost: it may have been the 200

    @property
    def address(self) -> str:
        return key_of(self.name)[1]

    async def live(self) -> None:
        world = self.town.world
        self.town.chain.fund(self.address, RICH_UNITS)
        await asyncio.sleep(world.dice.uniform(5.0, 15.0))
        self._transfer()
        await asyncio.sleep(world.dice.choice((0.1, 2.0, 6.0)))
        for _ in range(_MAX_TRIES * 2):
            self.last = await self.town.ask(self._request())
            world.note(f"{self.name} gets {self.last.status} {self.last.code}")
            if self.last.status == 200 and self.last.task_id is not None:
                self.accepted.append((self.last.task_id, self.name))
            self.has_lost |= self.last.status == 0
            if self.last.status not in (0, 500) and self.last.code != "TX_NOT_FOUND":
                return
            await asyncio.sleep(world.dice.choice((0.5, 3.0, 10.0)))
        self.gave_up = True

    def _request(self) -> Ask:
        assert self.transaction is not None
        prover = self.name if self.proves else None
        return buy_direct(self.transaction.hash, self.name, self.idempotency_key, prover)

    def _transfer(self) -> None:
        """Pay at once, in two transfers of one transaction, too little, or beside other tokens."""
        dice, price = self.town.world.dice, market.PRICE_UNITS
        kind = dice.random()
        calls = [transfer_call(self.address, market.WALLET, price)]
        if kind < 0.1:
            self.units = price - 1
            calls = [transfer_call(self.address, market.WALLET, price - 1)]
        elif kind < 0.2:
            calls = [transfer_call(self.address, market.WALLET, 1), *calls]
        elif kind < 0.3:
            calls = [transfer_call(self.address, market.WALLET, price, OTHER_TOKEN), *calls]
        self.transaction = self.town.publish(self.name, *calls, is_sticky=True)
