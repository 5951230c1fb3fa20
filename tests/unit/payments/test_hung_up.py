"""Work for a buyer that has disconnected: it finishes, and only its errors are logged."""

import asyncio
import gc

import pytest
import structlog

from gateway.contracts.store import PayerBusy
from gateway.errors import ExecutionError, PaymentRequired


@pytest.mark.parametrize(
    ("outcome", "logged"),
    [
        (None, []),
        (PayerBusy(), []),
        (ExecutionError("the disk is full"), []),
        (ZeroDivisionError("a fault"), ["payment.fault_after_disconnect"]),
    ],
)
async def test_the_work_ends_and_only_a_fault_is_logged(acceptance, outcome, logged):
    complaints, ended = [], asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    may_end = asyncio.Event()

    async def work():
        await may_end.wait()
        ended.set()
        if outcome is not None:
            raise outcome

    with structlog.testing.capture_logs() as entries:
        buyer = asyncio.create_task(acceptance._run_to_end(work()))
        await asyncio.sleep(0)
        buyer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await buyer
        may_end.set()
        await ended.wait()
        await asyncio.sleep(0)
        gc.collect()
        await asyncio.sleep(0)
    assert [entry["event"] for entry in entries] == logged
    assert complaints == []


async def test_a_request_that_was_cut_off_holds_up_no_refusal_of_its_payment(acceptance):
    checking = asyncio.Event()

    async def find(*, claimant):
        claimant.name("auth:1", None)

    async def check_for_ever(_):
        checking.set()
        await asyncio.Event().wait()

    async def refuse(_):
        raise PaymentRequired("invalid_payload")

    first = asyncio.create_task(acceptance.find_or_buy(find, check_for_ever))
    await checking.wait()
    second = asyncio.create_task(acceptance.find_or_buy(find, refuse))
    await asyncio.sleep(0.01)
    assert not second.done()
    first.cancel()
    with pytest.raises(PaymentRequired) as refusal:
        await second
    assert refusal.value.is_uncharged
