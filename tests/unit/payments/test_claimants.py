"""A refusal states that nothing was charged only if its twins cannot charge after it."""

import asyncio

import attrs
import pytest

from gateway.chain.authorization_checks import SPENT
from gateway.errors import ExecutionError, GatewayError, PaymentRequired, Restarting
from gateway.payments.accept import USED, Acceptance, Accepted

CLAIM = "auth:1"


@attrs.define
class Buyer:
    """One request, which waits in its checks until it is let go."""

    acceptance: Acceptance
    ledger: set[str]
    refusal: GatewayError | None = None
    holds_look: bool = False
    looks: int = 0
    checking: asyncio.Event = attrs.field(factory=asyncio.Event)
    checked: asyncio.Event = attrs.field(factory=asyncio.Event)
    writing: asyncio.Event = attrs.field(factory=asyncio.Event)
    written: asyncio.Event = attrs.field(factory=asyncio.Event)
    looking: asyncio.Event = attrs.field(factory=asyncio.Event)
    looked: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def start(self) -> asyncio.Task:
        asked = asyncio.create_task(self.acceptance.find_or_buy(self._find, self._buy))
        await self.checking.wait()
        return asked

    async def _find(self, *, claimant):
        claimant.name(CLAIM)
        is_known = CLAIM in self.ledger
        self.looks += 1
        if self.holds_look and self.looks == 2:
            # The database has read, and its answer is under way.
            self.looking.set()
            await self.looked.wait()
        return Accepted(task=CLAIM) if is_known else None

    async def _buy(self, _):
        self.checking.set()
        await self.checked.wait()
        if self.refusal is not None:
            raise self.refusal
        return await self.acceptance._run_to_end(self._write())

    async def _write(self):
        self.writing.set()
        await self.written.wait()
        self.ledger.add(CLAIM)
        return Accepted(task=CLAIM)


@pytest.mark.parametrize("hangs_up", [False, True])
async def test_a_refusal_finds_what_its_twin_takes_during_the_look(acceptance, hangs_up):
    ledger: set[str] = set()
    first = Buyer(acceptance, ledger)
    second = Buyer(acceptance, ledger, PaymentRequired("insufficient_funds"), holds_look=True)
    bought, refused = await first.start(), await second.start()
    second.checked.set()
    await second.looking.wait()
    first.checked.set()
    await first.writing.wait()
    if hangs_up:
        bought.cancel()
        await asyncio.wait({bought})
    else:
        first.written.set()
        await bought
    second.looked.set()
    await asyncio.sleep(0)
    first.written.set()
    assert (await refused).task == CLAIM


async def test_a_refusal_that_need_not_wait_says_nothing_about_its_twin(acceptance):
    first = Buyer(acceptance, ledger := set())
    refusal = Restarting()
    second = Buyer(acceptance, ledger, refusal)
    bought, refused = await first.start(), await second.start()
    second.checked.set()
    with pytest.raises(Restarting) as raised:
        await refused
    assert raised.value is refusal
    assert refusal.__cause__ is None
    assert not refusal.is_uncharged
    bought.cancel()


async def test_a_402_waits_for_no_later_request(acceptance):
    """A client that retries all the time would hold it up."""
    first = Buyer(acceptance, ledger := set(), PaymentRequired("insufficient_funds"))
    second = Buyer(acceptance, ledger, PaymentRequired("insufficient_funds"), holds_look=True)
    later = Buyer(acceptance, ledger)
    asked, refused = await first.start(), await second.start()
    second.checked.set()
    await second.looking.wait()
    retried = await later.start()
    second.looked.set()
    first.checked.set()
    with pytest.raises(PaymentRequired) as raised:
        await refused
    assert raised.value.is_uncharged
    retried.cancel()
    asked.cancel()


async def test_a_402_becomes_a_server_error_if_its_twin_takes_too_long(acceptance):
    acceptance.claimants.wait_s = 0.01
    first = Buyer(acceptance, ledger := set())
    second = Buyer(acceptance, ledger, PaymentRequired("insufficient_funds"))
    bought, refused = await first.start(), await second.start()
    second.checked.set()
    with pytest.raises(ExecutionError, match="is in progress") as raised:
        await refused
    assert not raised.value.is_uncharged
    bought.cancel()


@pytest.mark.parametrize("reason", [SPENT, USED])
async def test_a_payment_that_paid_for_another_request_is_not_called_uncharged(acceptance, reason):
    async def find(*, claimant):
        claimant.name(CLAIM)
        raise PaymentRequired(reason)

    async def buy(_):
        raise Restarting

    with pytest.raises(Restarting) as raised:
        await acceptance.find_or_buy(find, buy)
    assert not raised.value.is_uncharged
    assert "nothing was charged" not in raised.value.message
