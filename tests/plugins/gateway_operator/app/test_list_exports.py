"""The CSV of every list has the rows that the list shows, by each of its filters."""

import csv
import html
import io
import re
from datetime import UTC, datetime

import pytest

from tests.operator_history import Sale, add_sale
from tests.plugins.gateway_operator.app.operator import SAME, log_in

OTHER = "0x" + "ef" * 20
_FORM = re.compile(r'<form method="get"[^>]* class="filters".*?</form>', re.DOTALL)
_NAME = re.compile(r'<(?:input|select)[^>]* name="(\w+)"')
_CSV = re.compile(r'(?:href|action)="([^"]*\.csv[^"]*)"')
# What names a row on the page, and in which column of its CSV.
_TASK = (re.compile(r'href="/admin/tasks/([^"?/.]+)"'), "task")
_ENDPOINT = (re.compile(r'"/admin/endpoints/([\w-]+)/'), "endpoint")
_HOUR_S = 3600.0


@pytest.fixture
async def sold(gateway):
    """A gateway with sales of two days, payers and endpoints, and some actions of an operator."""
    await log_in(gateway)
    now = gateway.services.now()
    sales = [
        Sale(at=now - 3),
        Sale(at=now - 5, slug="paper", payer=OTHER),
        Sale(at=now - 9, status="failed", state="refunded", payer=OTHER),
        Sale(at=now - 12, status="failed", details="timed_out"),
        Sale(at=now - 60 * _HOUR_S, status="failed", decision="rejected"),
    ]
    for sale in sales:
        await gateway.services.store.write(add_sale, sale)
    return gateway


async def shown_and_exported(gateway, path: str, row) -> tuple[set[str], set[str], str]:
    """Return the names on a page, those in its CSV, and the page."""
    page = await (await gateway.client.get(path)).get_data(as_text=True)
    link = html.unescape(_CSV.findall(page)[-1])
    answer = await gateway.client.get(link)
    assert answer.status_code == 200
    rows = list(csv.DictReader(io.StringIO(await answer.get_data(as_text=True))))
    found, column = row
    return set(found.findall(page)), {one[column] for one in rows}, page


def _queries(gateway) -> dict[str, dict[str, str]]:
    """Queries of each list, by the filter: each leaves some rows and leaves some out."""
    today = datetime.fromtimestamp(gateway.services.now() - 3, UTC).strftime("%Y-%m-%d")
    return {
        "/admin/tasks": {
            "q": "0xefef",
            "state": "failed",
            "slug": "paper",
            "reason": "timed_out",
            "day": today,
            "payer": OTHER,
            "status": "completed",
        },
        "/admin/payments": {"q": "0xefef", "state": "refund_due", "day": today, "payer": OTHER},
        "/admin/endpoints": {"q": "paper", "range": "1h"},
        "/admin/refunds": {"state": "paid"},
    }


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("/admin/tasks", _TASK),
        ("/admin/payments", _TASK),
        ("/admin/endpoints", _ENDPOINT),
        ("/admin/refunds", _TASK),
    ],
)
async def test_a_csv_has_the_rows_of_its_page_by_each_filter(sold, path, row):
    queries = _queries(sold)[path]
    everything, _, page = await shown_and_exported(sold, path, row)
    forms = _FORM.findall(page)
    named = {name for form in forms for name in _NAME.findall(form)}
    # A filter that somebody adds needs its line here.
    assert named <= queries.keys()
    for name, value in queries.items():
        shown, exported, _ = await shown_and_exported(sold, f"{path}?{name}={value}", row)
        assert shown
        assert exported == shown, name
        if (path, name) != ("/admin/endpoints", "range"):
            assert shown != everything, name


async def test_a_csv_has_the_rows_of_two_filters_at_once(sold):
    for path, state in (("/admin/tasks", "failed"), ("/admin/payments", "refunded")):
        query = f"{path}?payer={OTHER}&state={state}"
        shown, exported, _ = await shown_and_exported(sold, query, _TASK)
        assert len(shown) == 1
        assert exported == shown


async def test_a_buyers_csv_has_the_payments_of_the_buyer(sold):
    shown, exported, _ = await shown_and_exported(sold, f"/admin/buyer?payer={OTHER}", _TASK)
    assert len(shown) == 2
    assert exported == shown


async def test_the_csv_of_the_audit_log_has_the_actions_of_the_filter(sold):
    for path in ("/admin/tasks/export.csv", "/admin/refunds/export.csv?state=paid"):
        assert (await sold.client.get(path)).status_code == 200
    for query, wanted in (
        (
            {"action": "list.export", "subject": ""},
            {("list.export", "tasks"), ("list.export", "refunds")},
        ),
        ({"action": "", "subject": "refunds"}, {("list.export", "refunds")}),
        ({"action": "list.export", "subject": "tasks"}, {("list.export", "tasks")}),
    ):
        path = "/admin/system/actions"
        answer = await sold.client.get(path, query_string=query)
        page = await answer.get_data(as_text=True)
        (form,) = re.findall(
            r'<form method="post" action="/admin/system/actions.csv">.*?</form>', page
        )
        sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
        assert {name: sent[name] for name in query} == query
        (filters,) = _FORM.findall(page)
        assert set(_NAME.findall(filters)) == query.keys()
        answer = await sold.client.post(f"{path}.csv", form=sent, headers=SAME)
        rows = csv.DictReader(io.StringIO(await answer.get_data(as_text=True)))
        assert {(row["action"], row["subject"]) for row in rows} == wanted
