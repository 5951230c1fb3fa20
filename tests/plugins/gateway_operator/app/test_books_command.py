"""`gateway books`, run beside the gateway."""

import asyncio
import csv
import io
import json
import time

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.settings import variable
from gateway_operator.books.span import begin_of, read_span
from tests.conftest import buy, running
from tests.operator_history import Sale, add_method_sale, add_sale

NAMES = ("base_url", "wallet", "data_dir", "settlement_key")
DAY = begin_of(read_span("2026-03-01", "2026-03-01", 0).first)
ASKED = ("--from", "2026-03-01", "--to", "2026-03-02")


@pytest.fixture
def run(settings):
    env = {variable(name): str(getattr(settings, name)) for name in NAMES}
    env |= {"GATEWAY_RPC_URLS": ",".join(settings.rpc_urls), "COLUMNS": "80"}
    return lambda *words: CliRunner().invoke(main, ["books", *words], env=env)


@pytest.fixture
def sold(settings, provider, payer, clock) -> None:
    """Two past sales, one of them of unknown cost, and one of today."""

    async def fill() -> None:
        async with running(settings, provider, now=clock) as gateway:
            write = gateway.services.store.write
            await write(add_sale, Sale(at=DAY, units=1_500_000, cost_micros=40_000))
            await write(add_sale, Sale(at=DAY + 86_400, units=20_000, payer="=cmd()"))
            answer = await buy(gateway, payer.header())
            await gateway.wait((await answer.get_json())["taskId"])

    asyncio.run(fill())


def test_a_line_for_each_day_with_sales_and_their_sum(run, sold):
    printed = run(*ASKED).stdout
    assert all(len(line) <= 80 for line in printed.splitlines())
    for said in ("2026-03-01", "2026-03-02", "total", "1.52", "1 results have no known cost"):
        assert said in printed


def test_json_has_every_day(run, sold):
    lines = json.loads(run(*ASKED, "--format", "json").stdout)
    assert [line["taken_usdc"] for line in lines] == ["1.5", "0.02"]
    assert [line["margin_usdc"] for line in lines] == ["1.46", ""]


def test_csv_opens_right_in_a_spreadsheet(run, sold):
    text = run(*ASKED, "--by", "sale", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["kind"] for row in rows] == ["sale", "vendor", "sale", "vendor"]
    assert rows[1]["usd"] == "-0.04"
    assert rows[2]["payer"] == "'=cmd()"
    assert rows[3]["cost_source"] == "unknown"


def test_a_sale_by_a_method_has_its_claim_and_receipt_and_is_none_of_the_chains(
    run, settings, provider, clock
):
    async def fill() -> None:
        async with running(settings, provider, now=clock) as gateway:
            write = gateway.services.store._write
            await write(lambda db: add_method_sale(db, at=clock()))

    asyncio.run(fill())
    text = run("--from", _today(), "--by", "sale", "--format", "csv").stdout
    sale, vendor = csv.DictReader(io.StringIO(text, newline=""))
    assert (sale["flow"], sale["payer"], sale["usdc"]) == ("voucher", "Voucher serial-1", "0.05")
    assert (sale["claim"], sale["receipt"]) == ("voucher:serial-1", "receipt-1")
    assert sale["tx"] == vendor["related_tx"] == ""
    assert "receipt-1" in run("--from", _today(), "--by", "sale").stdout
    result = run("--from", _today(), "--reconcile", "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)[0]["booked"]) == (0, "0.000000")


def test_an_export_by_the_command_is_written_down(run, sold, settings):
    run(*ASKED, "--by", "day", "--format", "csv")
    env = {variable(name): str(getattr(settings, name)) for name in NAMES}
    listed = CliRunner().invoke(main, ["actions", "--json"], env=env)
    (action,) = json.loads(listed.stdout)
    assert (action["action"], action["door"], action["subject"]) == ("books.export", "cli", "day")


def test_gas_in_dollars_by_the_price_that_is_given(run, sold):
    (line,) = json.loads(run("--from", _today(), "--format", "json", "--eth-usd", "1000000").stdout)
    assert float(line["gas_usd"]) == pytest.approx(float(line["gas_eth"]) * 10**6, abs=10**-6)


def test_the_books_agree_with_the_chain(run, sold, payer, chain):
    payer.transfer(25_000)
    chain.mine(3)
    result = run("--from", _today(), "--reconcile")
    assert result.exit_code == 0, result.output
    assert "Unused: 0.025 USDC" in result.stdout
    assert "every entry of the books is on the chain, but 0.025 USDC" in result.stdout


def test_what_the_chain_does_not_hold_is_an_exit_code(run, settings, provider, clock):
    async def fill() -> None:
        async with running(settings, provider, now=clock) as gateway:
            sale = Sale(at=time.time(), units=20_000)
            await gateway.services.store.write(add_sale, sale)

    asyncio.run(fill())
    result = run("--from", _today(), "--reconcile")
    assert result.exit_code == 1
    assert "In the books, but not on the chain: 0.02 USDC" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "soon"), "'soon' is not a date. Write it as 2026-11-30."),
        (("--eth-usd", "much"), "--eth-usd must be dollars"),
        (("--eth-usd", "-1"), "--eth-usd must be dollars"),
    ],
)
def test_a_mistake_is_one_sentence(run, words, message):
    result = run(*words)
    assert result.exit_code == 1
    assert message in result.stderr


def _today() -> str:
    return read_span(None, None, time.time()).last.isoformat()
