"""Checks of files before payment: addresses share them fairly, and only heavy users are refused."""

import asyncio
import base64

import attrs
import pytest
from document_sales import pdf_of

from gateway.running.intake import CHECKS
from gateway.sandbox.fair_share import FairShare
from gateway.sandbox.pages import Pages
from gateway.sandbox.pictures import SentPictures
from gateway_documents import sandboxes
from tests.conftest import nothing_charged, running
from tests.gateway.web.test_checks_before_payment import Counting

SLOW = b"slow"
# No check is protected from others, so that no test waits.
SHARES = attrs.evolve(CHECKS, protected_s=0.0)


class SlowChecks:
    """A provider's check that does not end for some files."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.news = asyncio.Condition()

    async def validate(self, request, endpoint):
        if request.attachment is None or request.attachment.data != SLOW:
            return
        async with self.news:
            self.begun.append(request.attachment.name)
            self.news.notify_all()
        await asyncio.Event().wait()

    async def wait_for(self, count: int) -> None:
        async with self.news:
            await self.news.wait_for(lambda: len(self.begun) >= count)


@pytest.fixture
def slow(provider):
    checks = SlowChecks()
    provider.validate = checks.validate
    return checks


@pytest.fixture
async def selling(settings, provider, chain):
    settings = attrs.evolve(settings, client_ip_header="X-Client", limit_price="100/60s")
    async with running(settings, more=[Counting(provider)]) as gateway:
        yield gateway


def share(gateway, **changes):
    gateway.services.intake.checks = FairShare(attrs.evolve(SHARES, **changes))


async def ask(gateway, address, data, name="a.txt", header=None):
    body = {"fileBase64": base64.b64encode(data).decode(), "fileName": name}
    headers = {"X-Client": address} | ({"X-PAYMENT": header} if header else {})
    return await gateway.client.post("/api/x402/paper", json=body, headers=headers)


def greedy(gateway, count, address="198.51.100.{}"):
    return [
        asyncio.create_task(ask(gateway, address.format(at), SLOW, name=f"{at}.txt"))
        for at in range(count)
    ]


async def test_a_price_and_a_purchase_do_not_wait_for_slow_files_of_others(selling, slow, payer):
    share(selling)
    attackers = greedy(selling, 3)
    await slow.wait_for(2)
    assert (await ask(selling, "203.0.113.1", b"letter")).status_code == 402
    paid = await ask(selling, "203.0.113.2", b"letter", header=payer.header(10_000))
    assert paid.status_code == 200
    cut = [task.result() for task in attackers if task.done()]
    assert cut
    for answer in cut:
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert "are being checked" in (await answer.get_json())["error"]
    for task in attackers:
        task.cancel()


async def test_a_payment_does_not_wait_for_the_check_that_its_price_passed(selling, slow, payer):
    share(selling, protected_s=60.0, waiting=0)
    bought = "203.0.113.1", b"letter"
    assert (await ask(selling, *bought)).status_code == 402
    # Slow checks hold all slots, none is cancelled, and none may wait.
    attackers = greedy(selling, 2)
    await slow.wait_for(2)
    assert (await ask(selling, *bought, header=payer.header(10_000))).status_code == 200
    for other in (("203.0.113.2", b"letter"), ("203.0.113.1", b"another")):
        assert (await ask(selling, *other)).status_code == 503
    for task in attackers:
        task.cancel()


async def test_a_purchase_whose_check_made_way_costs_nothing(selling, slow, payer, chain):
    share(selling)
    header = payer.header(10_000)
    async with nothing_charged(selling, chain):
        slow_ones = [
            asyncio.create_task(ask(selling, f"198.51.100.{at}", SLOW, header=header))
            for at in (1, 2)
        ]
        await slow.wait_for(2)
        assert (await ask(selling, "203.0.113.1", b"letter")).status_code == 402
        done, left = await asyncio.wait(slow_ones, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result().status_code for task in done] == [503]
    for task in left:
        task.cancel()
    bought = await ask(selling, "198.51.100.1", b"letter", header=header)
    assert bought.status_code == 200


async def test_who_fills_the_queue_gets_429_and_others_an_answer(selling, slow):
    share(selling, protected_s=60.0, waiting_per_address=1)
    first = greedy(selling, 1)
    await slow.wait_for(1)
    same = [
        asyncio.create_task(ask(selling, "198.51.100.0", SLOW, name=f"{at}.txt")) for at in (1, 2)
    ]
    done, waiting = await asyncio.wait(same, return_when=asyncio.FIRST_COMPLETED)
    (refused,) = done
    assert refused.result().status_code == 429
    assert int(refused.result().headers["Retry-After"]) > 0
    assert (await ask(selling, "203.0.113.1", b"letter")).status_code == 402
    for task in (*first, *waiting):
        task.cancel()


async def test_processor_time_of_files_is_charged_to_their_address(selling, slow):
    share(selling, budget_s=1e-6, refill_per_s=1e-7)
    assert (await ask(selling, "198.51.100.1", pdf_of(3), "a.pdf")).status_code == 402
    # Without other waiters, a spent budget refuses nothing.
    assert (await ask(selling, "198.51.100.1", pdf_of(4), "a.pdf")).status_code == 402
    (other,) = greedy(selling, 1, "203.0.113.1")
    await slow.wait_for(1)
    refused = await ask(selling, "198.51.100.1", pdf_of(5), "a.pdf")
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert "Checking your files" in (await refused.get_json())["error"]
    # Requests without a check, and other addresses, are not refused.
    picture = {"json": {"prompt": "x"}, "headers": {"X-Client": "198.51.100.1"}}
    assert (await selling.client.post("/api/x402/picture", **picture)).status_code == 402
    assert (await ask(selling, "198.51.100.2", pdf_of(3), "a.pdf")).status_code == 402
    other.cancel()


def test_no_check_waits_for_another_behind_the_slots():
    boxes = (Pages()._sandbox, SentPictures()._sandbox, sandboxes.text_reader())
    assert all(box.limits.children >= SHARES.slots for box in boxes)
