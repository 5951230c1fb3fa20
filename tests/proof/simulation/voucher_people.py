"""Customers with vouchers: honest buyers, and cheats who try to buy twice with one voucher."""

import asyncio
import functools
from collections.abc import Awaitable, Mapping

import attrs

from gateway import GenerationRequest
from gateway.payments import Accepted
from gateway.payments.sent import SentRequest
from gateway.running.gateway import Gateway
from tests.proof.simulation import market
from tests.proof.simulation.bank import Bank, Voucher
from tests.proof.simulation.ground import Answer, Ask
from tests.proof.simulation.paying import SignedHeader, key_of
from tests.proof.simulation.people import RICH_UNITS, Town
from tests.proof.simulation.voucher_method import HEADER

_MAX_VOUCHERS = 4  # a buyer gives up after so many for one request
_MAX_TRIES = 12
_REFUND_TO = "0x" + "77" * 20


@attrs.frozen
class Wanted:
    """One request for a picture."""

    prompt: str
    slug: str = market.SLUG

    @property
    def price_units(self) -> int:
        return market.PRICES[self.slug]


@attrs.frozen
class Shown:
    """A voucher's header that was sent with a request, and the response."""

    header: str
    wanted: Wanted
    answer: Answer


def buy(headers: Mapping[str, str], wanted: Wanted, idempotency_key: str | None) -> Ask:
    """Ask as the route does: the headers choose the payment method."""
    request = GenerationRequest(prompt=wanted.prompt)

    def ask(services: Gateway) -> Awaitable[Accepted]:
        chosen = services.payments.methods.choose(headers.get)
        assert chosen is not None
        (way, payment), payments = chosen, services.payments
        quote = services.quote(services.catalog[wanted.slug].endpoint)
        sent = SentRequest.of(quote, request)

        async def buy(_: object) -> Accepted:
            return await payments.accept(way, quote, request, payment, idempotency_key, sent)

        find = functools.partial(payments.find, way, sent, payment, idempotency_key)
        return payments.find_or_buy(find, buy)

    return ask


@attrs.define
class Customer:
    """A person with vouchers, who records all requests and responses."""

    town: Town
    bank: Bank
    name: str
    shown: list[Shown] = attrs.field(factory=list)

    async def show(
        self,
        header: str,
        wanted: Wanted,
        idempotency_key: str | None = None,
        *,
        patience_s: float | None = None,
    ) -> Answer:
        ask = buy({HEADER: header}, wanted, idempotency_key)
        answer = await self.town.ask(ask, patience_s=patience_s)
        self.shown.append(Shown(header, wanted, answer))
        self.town.world.note(f"{self.name} gets {answer.status} {answer.code} {answer.task_id}")
        return answer

    def issue(self, units: int, *, owner: str | None = None) -> Voucher:
        dice = self.town.world.dice
        return self.bank.issue(
            owner or self.name,
            units,
            seconds=dice.choice((2.0, 10.0, 600.0)),
            refund_to=dice.choice((None, _REFUND_TO)),
        )


@attrs.define
class VoucherBuyer(Customer):
    """Buys one picture: repeats the voucher until a response, and uses another one after a 402.

    With an Idempotency-Key he also uses another one after a lost response.
    """

    idempotency_key: str | None = None
    vouchers: list[Voucher] = attrs.field(factory=list)

    async def live(self) -> None:
        dice = self.town.world.dice
        await asyncio.sleep(dice.uniform(0.0, 14.0))
        wanted = Wanted(self.name, dice.choice(tuple(market.PRICES)))
        while len(self.vouchers) < _MAX_VOUCHERS:
            units = wanted.price_units + dice.choice((0, 0, 5_000))
            self.vouchers.append(self.issue(units))
            if await self._pay(self.vouchers[-1], wanted):
                return

    async def _pay(self, voucher: Voucher, wanted: Wanted) -> bool:
        """Repeat one voucher until a response; True if no other one is needed."""
        world = self.town.world
        for _ in range(_MAX_TRIES):
            hangs_up = not world.is_healed and world.dice.random() < 0.25
            answer = await self.show(
                voucher.header,
                wanted,
                self.idempotency_key,
                patience_s=world.dice.uniform(0.0, world.dice.choice((0.2, 3.0)))
                if hangs_up
                else None,
            )
            if answer.status == 402:
                return False
            if answer.status == 200 and world.dice.random() < 0.8:  # else asks once more
                return True
            if hangs_up and world.dice.random() < 0.5:
                continue  # at once
            if self.idempotency_key is not None and world.dice.random() < 0.3:
                return False  # another one: the key sees to it that he pays once
            await asyncio.sleep(world.dice.choice((0.0, 0.1, 1.0, 5.0, 30.0)))
        return True


@attrs.define
class VoucherCheat(Customer):
    """Tries in every way to get more than he paid for."""

    both: list[tuple[SignedHeader, Shown]] = attrs.field(factory=list)

    async def live(self) -> None:
        dice = self.town.world.dice
        self.town.chain.fund(key_of(self.name)[1], RICH_UNITS)
        kinds = {
            "at once": self._at_once,
            "one after the other": self._in_turn,
            "too small": self._too_small,
            "hangs up": self._hang_up,
            "revoked": self._revoke,
            "both ways": self._pay_both_ways,
        }
        for turn in range(dice.randint(1, 4)):
            await asyncio.sleep(dice.uniform(0.5, 8.0))
            kind = dice.choice(tuple(kinds))
            self.town.world.note(f"{self.name} cheats: {kind}")
            await kinds[kind](f"{self.name} {turn}")
        # By now others have used theirs.
        await self._forge()

    async def _at_once(self, prompt: str) -> None:
        """Send one voucher with several requests at the same time."""
        voucher = self.issue(market.PRICE_UNITS)
        tries = [self._try(voucher.header, prompt) for _ in range(3)]
        await asyncio.gather(*tries)

    async def _in_turn(self, prompt: str) -> None:
        voucher = self.issue(market.PRICE_UNITS)
        for _ in range(3):
            await self._try(voucher.header, prompt)
            await asyncio.sleep(self.town.world.dice.choice((0.0, 1.0, 40.0)))

    async def _try(
        self, header: str, prompt: str, *, patience_s: float | None = None, key: str | None = None
    ) -> None:
        """Send a voucher for the same or another picture, under the same key or another one."""
        dice = self.town.world.dice
        wanted = Wanted(f"{prompt} {dice.choice('aab')}", dice.choice(tuple(market.PRICES)))
        key = dice.choice((None, "key a", "key b")) if key is None else key
        await self.show(header, wanted, key, patience_s=patience_s)

    async def _forge(self) -> None:
        """Send another person's serial, with the secret part guessed or changed."""
        dice = self.town.world.dice
        shown = [one for one in self._others_shown() if one.header in self._genuine()]
        if not shown:
            return
        seen = dice.choice(shown)
        serial, units, *rest, secret = seen.header.split("|")
        guessed = (serial, units, *rest, "00" * 8)
        dearer = (serial, str(2 * int(units)), *rest, secret)
        forged = "|".join(dice.choice((guessed, dearer)))
        await self.show(forged, seen.wanted, dice.choice((None, "key 0", "key 1")))

    def _others_shown(self) -> list[Shown]:
        return [one for other in self.town.customers for one in other.shown]

    def _genuine(self) -> set[str]:
        return {voucher.header for voucher in self.bank.issued.values()}

    async def _too_small(self, prompt: str) -> None:
        voucher = self.issue(self.town.world.dice.choice((1, market.PRICE_UNITS - 1)))
        await self._try(voucher.header, prompt)

    async def _hang_up(self, prompt: str) -> None:
        """Disconnect in the middle, and return with the same voucher at once."""
        dice = self.town.world.dice
        voucher = self.issue(market.PRICE_UNITS)
        for _ in range(3):
            await self._try(voucher.header, prompt, patience_s=dice.uniform(0.0, 0.3))
        await self._try(voucher.header, prompt)

    async def _revoke(self, prompt: str) -> None:
        """Let the bank refund the voucher while the shop checks it."""
        dice = self.town.world.dice
        voucher = self.issue(market.PRICE_UNITS)
        asked = asyncio.ensure_future(self._try(voucher.header, prompt))
        await asyncio.sleep(dice.uniform(0.0, 0.5))
        self.bank.revoke(voucher)
        await asked

    async def _pay_both_ways(self, prompt: str) -> None:
        """Send a valid voucher and a valid authorization in one request."""
        signed = self.town.sign(self.name, seconds=30.0)
        voucher = self.issue(market.PRICE_UNITS)
        ask = buy({HEADER: voucher.header, "X-PAYMENT": signed.header}, Wanted(prompt), None)
        answer = await self.town.ask(ask)
        self.both.append((signed, Shown(voucher.header, Wanted(prompt), answer)))
