"""`/metrics` for Prometheus, on its own port."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator

import attrs
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway import Transient
from gateway.telemetry import signals
from gateway_operator.metrics.server import MetricsServer
from tests.cases import each
from tests.conftest import Running, buy, running

PATIENCE_S = 60


@attrs.define
class Scraper:
    """A Prometheus beside a gateway."""

    gateway: Running
    port: int

    async def ask(self, path: str = "/metrics", **headers: str) -> httpx2.Response:
        """Return the response to one request."""
        async with httpx2.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client:
            return await client.get(f"http://127.0.0.1:{self.port}{path}", headers=headers)

    async def scrape(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Return each sample's value by name and label values, in the labels' order."""
        answer = await self.ask()
        assert answer.status_code == 200, answer.text
        found: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
        for family in text_string_to_metric_families(answer.text):
            for sample in family.samples:
                found[sample.name][tuple(sample.labels.values())] = sample.value
        return found


@contextlib.asynccontextmanager
async def scraping(gateway: Running) -> AsyncIterator[Scraper]:
    server = MetricsServer(gateway.services, "127.0.0.1:0")
    await server.start()
    yield Scraper(gateway, server.port)
    await server.close()


@pytest.fixture
async def scraper(gateway) -> AsyncIterator[Scraper]:
    async with scraping(gateway) as one:
        yield one


async def sell(gateway: Running, payer) -> str:
    """Sell a picture by x402; returns its task."""
    answer = await buy(gateway, payer.header())
    assert answer.status_code == 200
    task_id = (await answer.get_json())["taskId"]
    await gateway.wait(task_id)
    return task_id


async def test_sales_are_counted_from_the_database(scraper, payer, clock):
    assert (await scraper.scrape())["gateway_sales_total"] == {}
    for sold in (1, 2):
        await sell(scraper.gateway, payer)
        # A second scrape within a second gets the same numbers.
        clock.offset_s += 2
        found = await scraper.scrape()
        assert found["gateway_sales_total"] == {("x402", "picture"): sold}
        assert found["gateway_sold_usdc_total"][("x402", "picture")] == pytest.approx(sold * 0.02)
        assert found["gateway_tasks_total"] == {("completed", "picture"): sold}
        assert found["gateway_attempts_total"][("scripted", "completed")] == sold
        assert found["gateway_task_seconds_count"] == {("picture",): sold}
        assert found["gateway_settlement_seconds_count"] == {("gateway_local_settler",): sold}
    assert found["gateway_queue_tasks"] == {("queued",): 0, ("processing",): 0}
    assert found["gateway_rpc_calls_total"][("1", "eth_sendRawTransaction", "ok")] >= 2
    assert found["gateway_commit_seconds_count"][()] > 0


async def test_a_restart_forgets_no_sale(settings, provider, chain, clock, payer):
    async with running(settings, provider, now=clock) as gateway:
        await sell(gateway, payer)
    async with running(settings, provider, now=clock) as again, scraping(again) as one:
        found = await one.scrape()
    assert found["gateway_sales_total"] == {("x402", "picture"): 1}
    assert found["gateway_tasks_total"] == {("completed", "picture"): 1}


async def test_a_failure_is_a_refund_with_its_outcome(scraper, payer, provider, clock):
    provider.script = [Transient("no")] * 10
    await sell(scraper.gateway, payer)
    clock.offset_s += 2
    found = await scraper.scrape()
    assert found["gateway_tasks_total"] == {("provider_error", "picture"): 1}
    assert found["gateway_refunds"][("refund_due",)] == 1
    assert found["gateway_refunds_usdc"][("refund_due",)] == pytest.approx(0.02)
    assert found["gateway_attempts_total"][("scripted", "Transient")] >= 1


async def test_a_refused_purchase_is_counted_by_its_code(scraper, payer):
    answer = await buy(scraper.gateway, payer.header(1))
    assert answer.status_code == 402
    found = await scraper.scrape()
    reason = "invalid_exact_evm_payload_authorization_value_mismatch"
    assert found["gateway_refused_total"] == {(reason, "x402", "picture"): 1}


async def test_no_label_grows_with_buyers(scraper, payer):
    task_id = await sell(scraper.gateway, payer)
    await scraper.gateway.client.get("/a-path-of-a-stranger")
    text = (await scraper.ask()).text
    assert 'rule="none"' in text
    for one in (task_id, payer.account.address.lower(), "stranger"):
        assert one not in text.lower()


async def test_scrapers_of_one_second_share_a_look(scraper, monkeypatch):
    reads = []
    store = scraper.gateway.services.store
    known = store.sum

    async def counted(function, *arguments):
        reads.append(function.__name__)
        return await known(function, *arguments)

    monkeypatch.setattr(store, "sum", counted)
    await asyncio.gather(*(scraper.ask() for _ in range(20)))
    assert reads.count("read_totals") <= 2


async def test_there_is_one_page(scraper):
    assert (await scraper.ask("/")).status_code == 404
    assert (await scraper.ask("/admin")).status_code == 404


async def test_openmetrics_is_answered_to_whoever_asks_for_it(scraper):
    answer = await scraper.ask(accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


@each(
    "accept",
    [
        "application/openmetrics-text;version=x",
        "text/plain;version=x",
        "application/openmetrics-text; version=1!1.0; q=0.5, text/plain;version=0.0.4",
        "application/openmetrics-text;version=.",
        "application/openmetrics-text;version==",
        "application/openmetrics-text;version=" + "1" * 5000,
        "application/openmetrics-text;version=\xb2",
        "text/plain;escaping=x;version=\xff",
        ";,;version=,",
    ],
)
async def test_an_accept_that_nobody_can_read_gets_the_metrics(scraper, accept):
    answer = await scraper.ask(accept=accept.encode("latin1"))
    assert answer.status_code == 200
    assert "gateway_queue_tasks" in answer.text


async def test_nobody_listens_after_the_end(gateway):
    async with scraping(gateway):
        assert signals.request_answered.receivers
    assert not signals.request_answered.receivers


async def test_the_state_of_keys_chain_and_disk_is_told(scraper):
    await scraper.gateway.services.lifecycle.warmed.wait()
    found = await scraper.scrape()
    assert found["gateway_key_eth"][("settlement",)] > 0
    assert found["gateway_key_usdc"][("wallet",)] == 0
    assert found["gateway_disk_free_bytes"][()] > 0
    assert found["gateway_rpc_block_age_seconds"][()] >= 0
    # There is no copy, so there is no age.
    assert "gateway_backup_age_seconds" not in found


async def test_a_silent_chain_leaves_gaps_and_no_error(scraper, chain):
    await scraper.gateway.silence_background()
    chain.stop()
    found = await scraper.scrape()
    assert "gateway_key_eth" not in found
    assert found["gateway_queue_tasks"] == {("queued",): 0, ("processing",): 0}
