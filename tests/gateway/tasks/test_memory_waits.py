"""What buyers see while this machine has no memory for a file or a result."""

import attrs
import pytest
from document_sales import buy_parsing, pdf_of

from gateway.sandbox import memory_budget
from gateway.sandbox.memory_budget import MemoryBudget
from gateway.sandbox.memory_reservation import Reservation
from gateway.tasks import TaskTiming
from tests.conftest import nothing_charged, running
from tests.gateway.web.orders import order, show
from tests.gateway.web.test_checks_before_payment import Counting
from tests.patience import until

MB = 10**6


@pytest.fixture
def budget(monkeypatch):
    """The budget of a gateway's sandboxes: 100 MB."""
    made = MemoryBudget()
    monkeypatch.setattr(memory_budget, "SHARED", made)
    return made


def everything():
    return Reservation(need_bytes=100 * MB, most_bytes=100 * MB, is_paid=True)


async def test_a_task_that_waits_for_memory_shows_so_until_it_has_some(
    settings, provider, payer, budget
):
    async with running(attrs.evolve(settings, sandbox_memory_mb=100), provider) as gateway:
        gateway.services.workers.resources.timing = TaskTiming(heartbeat_s=0.02)
        async with budget.held(everything()):
            task_id = await order(gateway, payer)

            async def waits():
                return (await show(gateway, task_id)).get("waitsFor") == "memory"

            await until(waits)
        task = await gateway.wait(task_id)
        assert (task["status"], task["attempt"], "waitsFor" in task) == ("completed", 1, False)


async def test_an_unpaid_check_waits_for_memory_for_a_bounded_time(
    settings, provider, chain, budget, monkeypatch
):
    monkeypatch.setattr(memory_budget, "_UNPAID_WAIT_S", 0.05)
    settings = attrs.evolve(settings, sandbox_memory_mb=100)
    async with running(settings, more=[Counting(provider)]) as gateway:
        async with nothing_charged(gateway, chain), budget.held(everything()):
            answer = await buy_parsing(gateway, None, "paper", pdf_of(1))
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert (await buy_parsing(gateway, None, "paper", pdf_of(1))).status_code == 402
