"""Sales that a standstill interrupts are checked again, whatever pays."""

import time

import pytest

from tests.conftest import running
from tests.gateway.methods.tickets import TicketPlugin, Tickets, pay


class StoodStill:
    """A check during which hours pass: as many as the next number of `gaps`."""

    def __init__(self, gateway, check, gaps):
        self.gateway, self.check, self.gaps = gateway, check, gaps
        self.passed_s = 0.0
        self.calls = 0
        gateway.services.standstills.monotonic = lambda: time.monotonic() + self.passed_s

    async def __call__(self, *arguments, **named):
        self.calls += 1
        answer = await self.check(*arguments, **named)
        self.passed_s += 3600 * self.gaps.pop(0)
        return answer


@pytest.fixture
def tickets():
    return Tickets()


@pytest.fixture
async def warm(settings, provider, tickets):
    async with running(settings, provider, [TicketPlugin(tickets)]) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        yield gateway


@pytest.fixture(params=["direct", "method"])
def interrupted(request, warm, tickets, payer, monkeypatch):
    """Return a function that buys with these gaps, and the check's calls."""

    async def buy_directly(gaps):
        transfers, tx_hash = warm.services.payments.transfers, payer.transfer(20_000)
        check = StoodStill(warm, transfers.find_transfers, gaps)
        monkeypatch.setattr(transfers, "find_transfers", check)
        body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
        return await warm.client.post("/api/proxy-generate", json=body), check.calls

    async def buy_by_method(gaps):
        check = StoodStill(warm, tickets.check, gaps)
        monkeypatch.setattr(Tickets, "check", lambda _, *given: check(*given))
        return await pay(warm), check.calls

    return buy_directly if request.param == "direct" else buy_by_method


async def test_a_purchase_is_checked_again(interrupted):
    answer, calls = await interrupted([1, 0])
    assert (answer.status_code, calls) == (200, 2)


async def test_one_that_is_interrupted_each_time_is_refused_for_now(interrupted, warm):
    answer, calls = await interrupted([1, 1, 1])
    assert (answer.status_code, calls) == (503, 3)
    assert "nothing was charged" in (await answer.get_json())["error"].lower()
    assert answer.headers["Retry-After"] == "5"
    assert await warm.services.store._rows("SELECT 1 FROM payments") == []
