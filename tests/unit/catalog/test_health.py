"""Probing: a wrong key is found before any payment, and a recovered provider sells again."""

import asyncio
import contextlib
import json

import pytest

from gateway import AccountProblem, Transient
from gateway.catalog.catalog import Catalog
from gateway.catalog.health import probe_forever, probe_now, problem_of
from gateway.settings import EndpointOverride
from gateway.telemetry.redaction import Redactor
from gateway_vendors.refusals import note_answer
from tests.patience import PATIENCE_S, until
from tests.unit.tasks.engine_shop import PAPER, PlainApi, run_step


class Probed(PlainApi):
    """A provider whose health a test decides."""

    def __init__(self):
        super().__init__()
        self.health_steps = []
        self.usual = None
        self.asked = 0

    async def health(self):
        self.asked += 1
        await run_step(self.health_steps.pop(0) if self.health_steps else self.usual)


@pytest.fixture
def api():
    return Probed()


@pytest.fixture
def upstream(api, clock):
    clock.frozen_at = clock()
    return catalog_of(api, clock).everything()[0].upstream


def catalog_of(api, clock, **override):
    overrides = {"paper": EndpointOverride(**override)} if override else {}
    catalog = Catalog(overrides, now=clock)
    catalog.register(PAPER, api, "test")
    for upstream in catalog.upstreams():
        upstream.stop_s = 0.05
    return catalog


@contextlib.asynccontextmanager
async def probing(catalog):
    task = asyncio.create_task(probe_forever(catalog, check_s=0.01, timeout_s=PATIENCE_S))
    yield
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_wrong_key_takes_the_provider_off_sale_at_the_start(api, clock):
    api.usual = AccountProblem("401: wrong key")
    catalog = catalog_of(api, clock)
    async with probing(catalog):
        await until(lambda: list(catalog) == [])
    assert "401: wrong key" in catalog.everything()[0].upstream.circuit.problem


async def test_the_operator_reads_what_the_vendor_said_without_secrets(api, clock):
    refused = {"error": {"code": "invalid_api_key", "message": "Incorrect key sk-of-mine."}}

    class Refusing(Probed):
        async def health(self):
            note_answer(401, json.dumps(refused).encode())
            raise AccountProblem("The provider answers with status 401.")

    catalog = catalog_of(Refusing(), clock)
    upstream = catalog.everything()[0].upstream
    upstream.redactor = Redactor(["sk-of-mine"])
    async with probing(catalog):
        await until(lambda: upstream.circuit.is_open)
    message = upstream.circuit.problem
    assert message.startswith("status 401 invalid_api_key: Incorrect key ")
    assert "sk-of-mine" not in message
    assert upstream.circuit.is_account


@pytest.mark.parametrize("error", [Transient("502"), KeyError("x"), TimeoutError()], ids=repr)
async def test_a_provider_that_is_away_at_the_start_stays_on_sale(api, clock, error):
    api.usual = error
    catalog = catalog_of(api, clock)
    async with probing(catalog):
        await until(lambda: api.asked)
        await asyncio.sleep(0.05)
        assert len(list(catalog)) == 1
    assert api.asked == 1


async def test_who_works_again_is_on_sale_again_and_who_does_not_is_asked_less_often(api, clock):
    clock.frozen_at = clock()
    catalog = catalog_of(api, clock)
    circuit = catalog.everything()[0].upstream.circuit
    async with probing(catalog):
        await until(lambda: api.asked == 1)
        circuit.trip("402")
        api.usual = AccountProblem("still 402")
        await asyncio.sleep(0.05)
        assert api.asked == 1
        clock.offset_s += 30
        await until(lambda: "still" in (circuit.problem or ""))
        assert api.asked == 2
        clock.offset_s += 59
        await asyncio.sleep(0.05)
        assert api.asked == 2
        api.usual = None
        clock.offset_s += 1
        await until(lambda: not circuit.is_open)
    assert api.asked == 3


async def test_a_model_that_was_off_sale_is_tried_once_its_rest_is_over(api, clock):
    clock.frozen_at = clock()
    catalog = catalog_of(api, clock)
    circuit = catalog["paper"].circuit
    circuit.trip("404", pause_s=100, is_account=True)
    api.usual = Transient("502")
    async with probing(catalog):
        await until(lambda: api.asked)
        clock.offset_s += 100
        await until(lambda: "502" in (circuit.problem or ""))
        assert circuit.is_account  # the vendor's trouble has not brought the model back
        api.usual = None
        clock.offset_s += 1800
        await until(lambda: len(catalog) == 1)


async def test_an_operator_puts_a_model_on_sale_again(api, clock):
    catalog = catalog_of(api, clock)
    catalog["paper"].circuit.trip("404", is_account=True)
    api.usual = AccountProblem("401")
    assert await probe_now(catalog["paper"]) == "AccountProblem: 401"
    assert len(catalog) == 0
    api.usual = None
    assert await probe_now(catalog["paper"]) is None
    assert len(catalog) == 1


async def test_who_cannot_be_asked_is_tried_by_the_next_buyer(clock):
    clock.frozen_at = clock()
    catalog = catalog_of(PlainApi(), clock)
    circuit = catalog.everything()[0].upstream.circuit
    circuit.trip("Transient")
    async with probing(catalog):
        await asyncio.sleep(0.05)
        assert circuit.is_open
        clock.offset_s += 30
        await until(lambda: not circuit.is_open)
    circuit.failed("Transient", "task-1")
    assert circuit.is_open


@pytest.mark.parametrize(
    "error",
    [SystemExit(1), asyncio.CancelledError(), KeyboardInterrupt(), RecursionError()],
    ids=repr,
)
async def test_whatever_a_health_raises_the_others_are_probed(api, clock, error):
    clock.frozen_at = clock()
    api.usual = error
    catalog = catalog_of(api, clock)
    circuit = catalog.everything()[0].upstream.circuit
    async with probing(catalog):
        await until(lambda: api.asked == 1)
        circuit.trip("402")
        clock.offset_s += 30
        await until(lambda: api.asked == 2)
        api.usual = None
        async with asyncio.timeout(PATIENCE_S):
            while circuit.is_open:  # what was raised may be counted after the clock moved
                clock.offset_s += 60
                await asyncio.sleep(0.01)


async def test_a_health_that_hangs_or_clings_is_cut_off(api, clock, upstream):
    freed = asyncio.Event()

    async def clings():
        while not freed.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await freed.wait()

    api.usual = clings
    assert await problem_of(upstream, timeout_s=0.05) == "TimeoutError"
    freed.set()
    await asyncio.sleep(0)
    api.usual = AccountProblem("401")
    assert await problem_of(upstream) == "AccountProblem: 401"
    api.usual = None
    assert await problem_of(upstream) is None


async def test_who_is_switched_off_is_not_asked(api, clock):
    async with probing(catalog_of(api, clock, enabled=False)):
        await asyncio.sleep(0.05)
    assert api.asked == 0
