"""Payments is a list of all payments: searched, paged, exported, and with a page per buyer."""

import csv
import io

import pytest

from gateway_operator.desk import all_payments, list_exports
from gateway_operator.desk.payments import read_unused
from gateway_operator.state import Operator
from tests.conftest import Payer, buy
from tests.operator_history import Sale, add_sale
from tests.plugins.gateway_operator.app.operator import actions_of, log_in, text_of

PAGE = "/admin/payments"
OTHER = "0x" + "ef" * 20


@pytest.fixture
async def sold(gateway):
    """A gateway with four sales of two payers; returns the tasks' ids, oldest first."""
    await log_in(gateway)
    now = gateway.services.now()
    sales = [
        Sale(at=now - 400, slug="paper"),
        Sale(at=now - 300, status="failed", state="refunded"),
        Sale(at=now - 200, status="failed"),
        Sale(at=now - 100, payer=OTHER),
    ]
    write = gateway.services.store.write
    return [await write(add_sale, sale) for sale in sales]


async def rows_of(gateway, path: str) -> list[dict[str, str]]:
    answer = await gateway.client.get(path)
    assert answer.status_code == 200, await answer.get_data(as_text=True)
    return list(csv.DictReader(io.StringIO(await answer.get_data(as_text=True))))


async def listed(gateway, query: str = "") -> list[int]:
    """Numbers of the listed payments."""
    answer = await gateway.client.get(f"/admin/api/v1/payments?{query}")
    assert answer.status_code == 200
    return [one["row"]["paymentId"] for one in (await answer.get_json())["payments"]]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [4, 3, 2, 1]),
        ("q=0xefef", [4]),
        ("q=0xABAB%E2%80%A6abab", [3, 2, 1]),
        ("q=0xabab...efef", []),
        (f"q=0x{2:064x}", [2]),
        (f"q=0x{2**40 + 2:064x}", [2]),
        ("state=refund_due", [3]),
        (f"payer={OTHER}", [4]),
        ("day=2001-01-01", []),
        ("before=3", [2, 1]),
        ("q=nothing", []),
    ],
)
async def test_payments_are_found_by_what_a_page_shows_of_them(gateway, sold, query, numbers):
    assert await listed(gateway, query) == numbers


async def test_a_task_is_found_by_the_public_start_of_its_id_only(gateway, sold, payer):
    task = (await (await buy(gateway, payer.header())).get_json())["taskId"]
    for start in (task[:6], task[:8], task[:11], task[:18], task):
        assert await listed(gateway, f"q={start}") == [5]
    for secret in (task[:20], task[:35]):
        assert await listed(gateway, f"q={secret}") == []


async def test_pages_follow_each_other_without_gap_or_repeat(gateway, sold, monkeypatch):
    monkeypatch.setattr(all_payments, "PER_PAGE", 3)
    first = await (await gateway.client.get("/admin/api/v1/payments")).get_json()
    assert first["nextBefore"] == 2
    assert await listed(gateway, "before=2") == [1]
    page = await (await gateway.client.get(PAGE)).get_data(as_text=True)
    assert f"{PAGE}?before=2" in page
    assert "Unused transfers" not in await text_of(await gateway.client.get(f"{PAGE}?before=2"))


@pytest.mark.parametrize(
    "query", ["state=none", "day=1", "before=x", "before=-1", "q=" + "a" * 201]
)
async def test_a_filter_that_is_none_is_refused(gateway, sold, query):
    for path in (PAGE, f"{PAGE}/export.csv", "/admin/api/v1/payments"):
        if "before" not in query or "export" not in path:
            assert (await gateway.client.get(f"{path}?{query}")).status_code == 400


async def test_a_buyers_page_sums_what_was_bought_failed_and_given_back(
    gateway, sold, chain, monkeypatch
):
    buyer = Payer(chain)
    buyer.transfer(30_000)
    desk = gateway.services.find(Operator).desk
    await read_unused(desk, timeout_s=60.0)
    found = await all_payments.read_buyer(desk, "0x" + "AB" * 20)
    sums = [(one.count, one.units) for one in (found.bought, found.failed, found.refunded)]
    assert sums == [(3, 60_000), (2, 40_000), (1, 20_000)]
    assert (found.owed.count, found.owed.units, found.unused_units) == (1, 20_000, 0)
    text = await text_of(await gateway.client.get(f"/admin/buyer?payer=0x{'ab' * 20}"))
    for words in ("3 paid", "Failed 2", "1 refund", "0.02 still owed", "paper"):
        assert words in text
    # The page refreshes every few seconds; its sums are kept for longer.
    with monkeypatch.context() as patched:
        patched.setattr(all_payments.all_payments, "sum_buyer", None)
        assert (await all_payments.read_buyer(desk, "0x" + "AB" * 20)).bought == found.bought
    unused = await all_payments.read_buyer(desk, buyer.account.address)
    assert (unused.bought.count, unused.unused_units) == (0, 30_000)
    for payer in ("", "0x" + "12" * 20):
        assert (await gateway.client.get(f"/admin/buyer?payer={payer}")).status_code == 404


async def test_lists_are_exported_as_filtered_and_the_export_is_recorded(gateway, sold):
    rows = await rows_of(gateway, f"{PAGE}/export.csv?q=0xabab")
    assert [row["state"] for row in rows] == ["refund owed", "refunded", "paid"]
    assert rows[1]["refund_tx"] == f"0x{2**40 + 2:064x}"
    tasks = await rows_of(gateway, "/admin/tasks/export.csv?state=failed")
    assert [row["task"] for row in tasks] == [sold[2], sold[1]]
    (refund,) = await rows_of(gateway, "/admin/refunds/export.csv?state=paid")
    assert (refund["usdc"], refund["kind"]) == ("0.02", "paid")
    endpoints = {
        row["endpoint"]: row for row in await rows_of(gateway, "/admin/endpoints/export.csv")
    }
    assert endpoints["picture"]["sold"] == "3"
    assert await rows_of(gateway, f"{PAGE}/unused.csv") == []
    subjects = [action.subject for action in await actions_of(gateway, "list.export")]
    assert subjects == ["unused-transfers", "endpoints", "refunds", "tasks", "payments"]


async def test_a_file_ends_at_its_limit_and_says_so(gateway, sold, monkeypatch):
    monkeypatch.setattr(list_exports, "MAX_ROWS", 3)
    monkeypatch.setattr(list_exports, "_PER_READ", 2)
    rows = await rows_of(gateway, f"{PAGE}/export.csv")
    assert [row["endpoint"] for row in rows] == ["picture", "picture", "picture", ""]
    assert rows[-1]["time"].startswith("The file ends after 3 rows.")


@pytest.mark.parametrize("path", [f"{PAGE}/export.csv", "/admin/tasks/export.csv", "/admin/buyer"])
async def test_no_list_without_a_session(gateway, path):
    assert (await gateway.client.get(path)).status_code == 401
