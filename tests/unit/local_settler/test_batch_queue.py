"""Which payments wait for a batch, and for how long."""

import asyncio
from types import SimpleNamespace

import pytest

from gateway.chain.transactions import MULTICALL3, Call
from gateway.domain import Authorization, Flow, Payment, PaymentState
from gateway.domain.eip3009 import BASE
from gateway_local_settler import batches as module
from gateway_local_settler.batches import Batches

CALL = Call(to=BASE.token, data=b"", gas=150_000)


class Keys:
    """Settlement keys that send on demand; `sent` has the sent payments, in order."""

    addresses = ("0x" + "c3" * 20,)

    def __init__(self) -> None:
        self.sent: list[list[int]] = []
        self.first_may_end = asyncio.Event()

    async def resend(self, payment):
        return None

    async def send_new(self, payment, call, counts=None):
        self.sent.append([payment.id])
        if len(self.sent) == 1:
            await self.first_may_end.wait()
        return f"alone {payment.id}"

    submit = send_new

    async def send_batch(self, batch, gas_of):
        ids = [payment.id for payment, _ in batch]
        self.sent.append(ids)
        return f"batch {ids}", ids


class Outside:
    """A chain on which Multicall3 is the only contract, and an empty journal."""

    async def code(self, address):
        return b"\1" if address == MULTICALL3 else b""

    async def nonces_of(self, payment_id, *signers):
        return 0


async def never():
    return False


@pytest.fixture
def keys():
    return Keys()


@pytest.fixture
def queue(keys, monkeypatch):
    monkeypatch.setattr(module, "is_signed_by_key", lambda signed, network: True)
    settings = SimpleNamespace(settlement_batch=3, chain=BASE)
    context = SimpleNamespace(settings=settings, chain=Outside(), journal=Outside())
    return Batches(keys, context, never)


def payment(number: int) -> Payment:
    signed = Authorization(
        sender=f"0x{number:040x}",
        recipient="0x" + "b2" * 20,
        value_units=1,
        valid_after=0,
        valid_before=1,
        nonce=f"0x{number:064x}",
        signature=bytes(65),
    )
    return Payment(
        id=number,
        flow=Flow.X402,
        state=PaymentState.RESERVED,
        request_hash="",
        price_units=1,
        payer=signed.sender,
        authorization=signed,
        search_from_block=0,
        paid_tx=None,
        paid_log_index=None,
        paid_units=None,
        slug="picture",
        task_id="task",
    )


async def submitted(queue, *numbers) -> list[asyncio.Task]:
    """Submit payments in this order; returns when each has got as far as it can."""
    tasks = [asyncio.create_task(queue.submit(payment(each), CALL)) for each in numbers]
    for _ in range(20):
        await asyncio.sleep(0)
    return tasks


async def test_who_comes_meanwhile_goes_together_up_to_the_size_of_a_batch(queue, keys):
    tasks = await submitted(queue, 1, 2, 3, 4, 5)
    assert keys.sent == [[1]]
    keys.first_may_end.set()
    answers = await asyncio.gather(*tasks)
    assert keys.sent == [[1], [2, 3, 4], [5]]
    assert answers == ["alone 1", *["batch [2, 3, 4]"] * 3, "alone 5"]


async def test_nobody_waits_for_one_that_does_not_end(queue, keys, monkeypatch):
    monkeypatch.setattr(module, "_MAX_WAIT_S", 0.01)
    first, *others = await submitted(queue, 1, 2, 3)
    assert await asyncio.gather(*others) == ["batch [2, 3]"] * 2
    assert not first.done()
    keys.first_may_end.set()
    assert await first == "alone 1"


async def test_who_gave_up_is_not_in_the_batch(queue, keys):
    first, gone, *others = await submitted(queue, 1, 2, 3, 4)
    gone.cancel()
    keys.first_may_end.set()
    assert await first == "alone 1"
    assert await asyncio.gather(*others) == ["batch [3, 4]"] * 2


async def test_an_error_reaches_each_of_a_batch_and_the_next_one_is_sent(queue, keys, monkeypatch):
    send_batch = keys.send_batch

    async def fails(batch, gas_of):
        monkeypatch.setattr(keys, "send_batch", send_batch)
        raise OSError("no answer")

    monkeypatch.setattr(keys, "send_batch", fails)
    tasks = await submitted(queue, 1, 2, 3, 4, 5, 6)
    keys.first_may_end.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in outcomes] == [str, OSError, OSError, OSError, str, str]
    assert keys.sent == [[1], [5, 6]]


async def test_closing_ends_what_is_under_way(queue, keys):
    tasks = await submitted(queue, 1, 2, 3)
    await queue.close()
    keys.first_may_end.set()
    assert await tasks[0] == "alone 1"
    assert keys.sent == [[1]]
    for task in tasks[1:]:
        task.cancel()
