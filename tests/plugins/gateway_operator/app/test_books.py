"""Rows, days and endpoints of the books have the same total, which equals the chain's."""

import csv
import io
import random
from decimal import Decimal
from types import SimpleNamespace

import attrs
import pytest

from gateway.errors import WrongValue
from gateway_operator.books.export import quote
from gateway_operator.books.reconcile import reconcile
from gateway_operator.books.span import begin_of, read_span
from gateway_operator.books.sums import read_days, read_endpoints
from gateway_operator.sql.sums import gas as gas_since
from gateway_operator.state import Operator
from tests.conftest import WALLET, buy
from tests.operator_history import Sale, add_sale
from tests.plugins.gateway_operator.app.operator import actions_of, log_in, post, text_of

PAGE = "/admin/books"
API = "/admin/api/v1/books"
SPAN = read_span("2026-03-01", "2026-03-03", 0)
NOON = begin_of(SPAN.first) + 43_200
ASKED = "from=2026-03-01&to=2026-03-03"


async def remember(gateway, *sales: Sale) -> None:
    for sale in sales:
        await gateway.services.store.write(add_sale, sale)


def any_sale(chance: random.Random) -> Sale:
    """A sale in or near the period."""
    status = chance.choice(["completed", "completed", "failed", "processing"])
    states = {"failed": ["refund_due", "refunded", "refund_failed"]}.get(status, ["settled"])
    return Sale(
        at=begin_of(SPAN.first) + chance.uniform(-86_400, 4 * 86_400),
        slug=chance.choice(["picture", "document", "=odd"]),
        units=chance.randrange(1, 10**9),
        status=status,
        state=chance.choice(states),
        cost_micros=chance.choice([None, 1, 40_000]) if status == "completed" else None,
        gas_wei=chance.choice([None, 10**13 + 1]),
    )


async def rows_of(gateway, by: str) -> list[dict[str, str]]:
    answer = await gateway.client.get(f"{PAGE}/export.csv?by={by}&{ASKED}")
    assert answer.status_code == 200
    text = await answer.get_data(as_text=True)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def total(rows, column: str, kind: str | None = None) -> Decimal:
    return sum(
        (Decimal(row[column]) for row in rows if row[column] and kind in (None, row.get("kind"))),
        Decimal(0),
    )


@pytest.mark.parametrize("seed", range(4))
async def test_rows_days_and_endpoints_add_up_to_the_same(gateway, seed):
    chance = random.Random(seed)
    await remember(gateway, *(any_sale(chance) for _ in range(60)))
    await log_in(gateway)
    events = await rows_of(gateway, "sale")
    for lines in (await rows_of(gateway, "day"), await rows_of(gateway, "endpoint")):
        assert total(lines, "taken_usdc") == total(events, "usdc", "sale") > 0
        assert total(lines, "refunded_usdc") == -total(events, "usdc", "refund")
        assert total(lines, "vendor_usd") == -total(events, "usd")
        assert total(lines, "gas_eth") == -total(events, "eth")
        assert total(lines, "sales") == sum(row["kind"] == "sale" for row in events)
        assert total(lines, "completed") == sum(row["kind"] == "vendor" for row in events)
    assert {row["day"] for row in events} <= {"2026-03-01", "2026-03-02", "2026-03-03"}


async def test_page_json_and_csv_tell_the_same(gateway):
    await remember(
        gateway,
        Sale(at=NOON, units=1_500_000, cost_micros=400_000),
        Sale(at=NOON + 86_400, units=20_000, status="failed"),
    )
    await log_in(gateway)
    page = await text_of(await gateway.client.get(f"{PAGE}?{ASKED}"))
    body = await (await gateway.client.get(f"{API}?{ASKED}")).get_json()
    assert body["total"] == {
        "day": "total",
        "sales": "2",
        "completed": "1",
        "failed": "1",
        "taken_usdc": "1.52",
        "refunded_usdc": "0",
        "owed_usdc_at_end": "0.02",
        "vendor_usd": "0.4",
        "cost_known": "1",
        "gas_eth": "0",
        "gas_unknown": "0",
        "margin_usdc": "1.12",
    }
    assert [line["taken_usdc"] for line in body["lines"]] == ["0", "0.02", "1.5"]
    for said in ("1.52", "0.02 owed at the end", "every cost known", "2026-03-02"):
        assert said in page


async def test_gas_that_is_not_read_yet_is_reported_as_unknown(gateway):
    await remember(gateway, Sale(at=NOON, gas_wei=10**13), Sale(at=NOON, gas_wei=10**13))

    def forget(db) -> None:
        db.execute(
            """UPDATE sent_transactions SET gas_wei = NULL, l1_fee_wei = NULL, mined_at = NULL
               WHERE payment_id = 1"""
        )

    await gateway.services.store.write(forget)
    for read in (read_days, read_endpoints):
        total = (await read(gateway.services.find(Operator).desk, SPAN)).total
        assert (total.gas_wei, total.gas_unknown) == (10**13, 1)
    gas = await gateway.services.store.sum(gas_since, NOON - 1)
    assert (gas.transactions, gas.unknown, gas.wei) == (2, 1, 10**13)


async def test_a_cost_that_nobody_told_leaves_the_margin_open(gateway):
    await remember(gateway, Sale(at=NOON, units=100), Sale(at=NOON, units=100, cost_micros=30))
    books = await read_days(gateway.services.find(Operator).desk, SPAN)
    assert books.total.margin_units is None
    assert books.total.kept_at_most_units == 170
    assert (books.total.completed, books.total.cost_known) == (2, 1)
    await log_in(gateway)
    page = await text_of(await gateway.client.get(f"{PAGE}?{ASKED}"))
    assert "Cash margin at most" in page
    assert "incomplete: 1 unknown" in page


async def test_what_is_owed_is_told_at_the_end_of_each_day(gateway):
    await remember(
        gateway,
        Sale(at=NOON, units=500, status="failed"),
        Sale(at=NOON + 86_400, units=70, status="failed", state="refunded"),
        Sale(at=NOON, units=9, status="failed", state="refund_failed", decision="rejected"),
    )
    books = await read_days(gateway.services.find(Operator).desk, SPAN)
    assert [line.owed_units_at_end for line in books.lines] == [500, 500, 500]
    assert [line.refunded_units for line in books.lines] == [0, 70, 0]


async def test_endpoints_are_sorted_by_what_they_brought(gateway):
    await remember(gateway, Sale(at=NOON, units=1), Sale(at=NOON, units=2, slug="document"))
    books = await read_endpoints(gateway.services.find(Operator).desk, SPAN)
    assert [(line.name, line.taken_units) for line in books.lines] == [
        ("document", 2),
        ("picture", 1),
    ]


# -- the chain


async def test_the_chain_agrees_to_the_unit(gateway, payer, chain):
    for _ in range(2):
        answer = await buy(gateway, payer.header())
        await gateway.wait((await answer.get_json())["taskId"])
    tx_hash = payer.transfer(25_000)
    chain.mine(3)
    found = await reconcile(
        gateway.services.find(Operator).desk, read_span(None, None, gateway.services.now())
    )
    assert (found.sales.booked, found.sales.booked_units) == (2, 40_000)
    assert found.sales.transfers_units == 65_000
    assert [one.tx_hash for one in found.sales.unbooked] == [tx_hash]
    assert found.sales.difference_units == 0
    assert found.level == "warn"


async def test_a_sale_that_the_chain_does_not_hold_is_listed(gateway, chain):
    await remember(gateway, Sale(at=gateway.services.now(), units=20_000))
    await log_in(gateway)
    today = read_span(None, None, gateway.services.now()).last
    answer = await post(gateway, f"{PAGE}/compare?from={today}&to={today}")
    page = await text_of(answer)
    assert answer.status_code == 200, page
    assert "In the books, not on the chain: 0.02" in page
    assert "some entries of the books are not on the chain" in page


async def test_refunds_of_a_key_that_was_changed_since_are_found_on_the_chain(
    gateway, payer, chain
):
    now = gateway.services.now()
    await remember(gateway, Sale(at=now, units=20_000, status="failed", state="refunded"))
    sent = payer.transfer(20_000, to="0x" + "ab" * 20)
    chain.mine(3)

    def note(db) -> None:
        sender = payer.account.address.lower()
        db.execute("UPDATE refunds SET tx_hash = ?, sender = ?", (sent, sender))

    await gateway.services.store.write(note)
    new_key = SimpleNamespace(address="0x" + "1" * 40)
    desk = attrs.evolve(gateway.services.find(Operator).desk, refunds=new_key)
    found = await reconcile(desk, read_span(None, None, now))
    assert (found.refunds.transfers_units, found.refunds.booked_units) == (20_000, 20_000)
    assert (list(found.refunds.missing), list(found.refunds.unbooked)) == ([], [])


async def test_a_silent_chain_is_a_sentence(gateway, chain):
    await gateway.silence_background()
    await log_in(gateway)
    chain.stop()
    today = read_span(None, None, gateway.services.now()).last
    answer = await post(gateway, f"{PAGE}/compare?from={today}&to={today}")
    assert answer.status_code == 409
    assert "gateway books --reconcile" in await text_of(answer)


# -- access


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}/export.csv", API])
async def test_strangers_read_no_books(gateway, path):
    answer = await gateway.client.get(f"{path}?{ASKED}")
    assert answer.status_code == 401
    assert WALLET not in await answer.get_data(as_text=True)


async def test_an_export_is_written_down(gateway):
    await log_in(gateway)
    await rows_of(gateway, "sale")
    (action,) = await actions_of(gateway, "books.export")
    assert action.subject == "sale"
    assert action.after == {"from": "2026-03-01", "to": "2026-03-03"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from=yesterday", "not a date"),
        ("from=2026-03-02&to=2026-03-01", "after the last one"),
        ("from=1999-01-01&to=2026-03-01", "ten years"),
        ("by=month", "by must be"),
    ],
)
async def test_a_mistake_is_a_sentence(gateway, query, message):
    await log_in(gateway)
    answer = await gateway.client.get(f"{PAGE}?{query}")
    assert answer.status_code == 400
    assert message in await text_of(answer)


async def test_more_than_a_week_is_compared_by_the_command(gateway):
    await log_in(gateway)
    answer = await post(gateway, f"{PAGE}/compare?from=2026-01-01&to=2026-03-01")
    assert answer.status_code == 400
    assert "gateway books --reconcile" in await text_of(answer)


@pytest.mark.parametrize("cell", ["=1+1", "+1", "@SUM(A1)", "-x", "\tx", "\rx", "+1.5"])
def test_no_cell_is_a_formula(cell):
    assert quote(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-0.02", "0.02", "picture", "", "0x12"])
def test_plain_cells_stay(cell):
    assert quote(cell) == cell


@pytest.mark.parametrize("text", ["2026-3-1", "", "0000-00-00", "2026-03-01T00:00"])
def test_a_day_is_written_in_one_way(text):
    if text:
        with pytest.raises(WrongValue):
            read_span(text, None, 0)
