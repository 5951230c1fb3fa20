"""Work for a buyer that has disconnected: it finishes, and only its errors are logged."""

import asyncio
import gc

import pytest
import structlog

from gateway.contracts.store import PayerBusy
from gateway.errors import ExecutionError
from gateway.payments.accept import Acceptance


@pytest.fixture
def acceptance() -> Acceptance:
    return Acceptance(
        store=None,
        chain=None,
        now=lambda: 0.0,
        born_at=0.0,
        check_serving=None,
        check_maker=None,
        check_wallet=None,
    )


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
