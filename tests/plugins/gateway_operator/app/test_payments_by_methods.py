"""Payments by a method on the operator's pages: its name and texts, without a transaction."""

import pytest

from gateway.domain import NO_ADDRESS, PaymentState
from gateway.store.method_payments import placeholder_tx
from gateway_operator.desk.payments import read_payments
from gateway_operator.desk.tasks import find_task, list_tasks, make_filter
from gateway_operator.state import Operator
from tests.operator_history import add_method_sale
from tests.plugins.gateway_operator.app.operator import log_in, text_of

STATES = ("settled", "released", "refund_due", "settling", "reserved")


@pytest.fixture
async def gateway(gateway):
    await log_in(gateway)
    await gateway.services.settlements._periodic.stop()
    return gateway


@pytest.fixture
def desk(gateway):
    return gateway.services.find(Operator).desk


@pytest.fixture
async def sold(gateway, clock) -> dict[str, str]:
    """Sales of the last five minutes by the method `voucher`: ids of tasks by state."""
    store, at = gateway.services.store, clock() - 300
    return {
        state: await store._write(
            lambda db, state=state: add_method_sale(
                db, at=at, state=PaymentState(state), serial=f"serial-{state}"
            )
        )
        for state in STATES
    }


async def read(gateway, path: str) -> str:
    answer = await gateway.client.get(path)
    assert answer.status_code == 200
    return await answer.get_data(as_text=True)


async def test_no_page_shows_a_stand_in_as_a_transaction_or_nobody_as_an_address(gateway, sold):
    pages = ("/admin", "/admin/tasks", "/admin/payments", "/admin/refunds", "/admin/books")
    for path in (*pages, *(f"/admin/tasks/{task_id}" for task_id in sold.values())):
        page = await read(gateway, path)
        assert NO_ADDRESS not in page
        assert "0x0000" not in page
        for state in STATES:
            assert placeholder_tx(f"voucher:serial-{state}") not in page
    for path in ("tasks", "payments", "overview", f"tasks/{sold['settled']}"):
        shown = await read(gateway, f"/admin/api/v1/{path}")
        assert placeholder_tx("voucher:serial-settled") not in shown
        assert '"method":"voucher"' in shown


async def test_lists_name_the_method_and_who_paid_in_its_words(gateway, sold):
    for path in ("/admin", "/admin/tasks"):
        assert "voucher Voucher serial-settled" in await text_of(await gateway.client.get(path))
    row = {
        one.row.id: one.row
        for one in (await list_tasks(gateway.services.find(Operator).desk, make_filter())).tasks
    }
    assert row[sold["settled"]].flow == row[sold["settled"]].method == "voucher"


# For each state the event, and facts about it.
TOLD = {
    "settled": (
        ["Bought by voucher", "Asked voucher for the money", "Paid: voucher took 0.05 USDC"],
        ["Paid 0.05 USDC by voucher", "Claim voucher:serial-settled", "Receipt receipt-1"],
    ),
    "released": (
        ["Asked voucher for the money", "Never paid: voucher refused"],
        ["Paid not yet", "Why it was refused It expired."],
    ),
    "refund_due": (
        ["Paid: voucher took 0.05 USDC", "Refund of 0.05 USDC owed"],
        ["The proof names for a refund no address", "Name an address for the refund"],
    ),
}


async def test_a_task_tells_claim_and_receipt_or_why_it_was_refused(gateway, desk, sold):
    for state, (told, facts) in TOLD.items():
        detail = await find_task(desk, sold[state])
        titles = [one.title for one in detail.timeline]
        assert [one for one in titles if one in told] == told
        assert not any(one.tx_hash for one in detail.timeline)
        text = await text_of(await gateway.client.get(f"/admin/tasks/{sold[state]}"))
        for said in (f"Payer Voucher serial-{state}", *facts):
            assert said in text


async def test_they_are_found_by_claim_and_by_the_payers_words_but_not_by_nobodys_address(
    desk, sold
):
    async def found(**wanted) -> list[str]:
        return [one.row.id for one in (await list_tasks(desk, make_filter(**wanted))).tasks]

    assert await found(q="voucher:serial-settled") == [sold["settled"]]
    assert await found(q="Voucher serial-settled") == [sold["settled"]]
    assert await found(payer="Voucher serial-released") == [sold["released"]]
    assert await found(q=NO_ADDRESS) == await found(payer=NO_ADDRESS) == []
    assert await found(q=placeholder_tx("voucher:serial-settled")) == []


async def test_an_open_one_says_that_its_plugin_closes_it(gateway, desk, sold):
    begun, asked = sorted((await read_payments(desk)).open, key=lambda one: one.row.state)
    assert "voucher was not asked yet" in begun.closes
    assert "it is asked again until it does" in asked.closes
    assert begun.closes.endswith(asked.closes.rpartition(". ")[2])
    text = await text_of(await gateway.client.get("/admin/payments"))
    assert "While no plugin for voucher is installed, it stays open." in text
    assert "voucher: the excess is not refunded" in text
    assert "2 payments without an outcome" in await text_of(await gateway.client.get("/admin"))
