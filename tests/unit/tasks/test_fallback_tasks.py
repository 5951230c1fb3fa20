"""An order that a fallback makes stays with the fallback, and with its own handle."""

import contextlib

import attrs
import pytest

from gateway import AccountProblem, Choice, GenerationRequest, Transient
from gateway.catalog.fallbacks import fill_defaults
from gateway.contracts.store import EndpointChange
from gateway.domain import PaymentState
from gateway.store.rows import attempts_of
from gateway_testing.facts import ENDPOINT
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, PICTURE, JobApi, PlainApi, opened

SPARE = attrs.evolve(ENDPOINT, slug="spare", model="model of spare", cost_micros=7_000)


@contextlib.asynccontextmanager
async def with_spare(tmp_path, provider, spare, clock, **options):
    """Open a shop whose third offer, by another vendor, is a fallback."""
    async with opened(tmp_path, provider, clock, start=False, **options) as shop:
        shop.catalog.register(SPARE, spare, "test of spare")
        shop.pool.start()
        yield shop


async def test_the_fallback_makes_it_and_the_books_have_the_bought_endpoint(tmp_path, clock):
    own, spare = PlainApi(), PlainApi(PICTURE)
    async with with_spare(tmp_path, own, spare, clock) as shop:
        shop.circuit.trip("status 401", is_account=True)
        task = await shop.ended(await shop.accept(maker=SPARE))
        row = await shop.row(task.id)
        assert (len(own.submits), len(spare.submits)) == (0, 1)
    assert (task.status, task.slug, task.payment.slug) == ("completed", "picture", "picture")
    assert (task.made_by, task.made_model) == ("spare", "model of spare")
    assert (row["slug"], row["cost_micros"], row["provider"]) == ("picture", 7_000, spare.name)


async def test_an_accepted_order_of_the_failing_endpoint_is_never_moved(tmp_path, clock):
    own, spare = PlainApi(), PlainApi(PICTURE)
    async with with_spare(tmp_path, own, spare, clock) as shop:
        shop.catalog.change({"picture": EndpointChange(changed_at=1.0, fallback="spare")})
        shop.circuit.trip("status 401", is_account=True)
        assert shop.catalog["picture"].maker is shop.catalog["spare"]
        task = await shop.ended(await shop.accept())
    assert (task.status, task.made_by) == ("failed", None)
    assert task.payment.state is PaymentState.REFUND_DUE
    assert own.submits == spare.submits == []


async def test_failures_of_the_fallback_count_for_it_and_end_as_a_refund_of_the_price(
    tmp_path, clock
):
    own, spare = PlainApi(), PlainApi(*[Transient("500")] * 8, idempotent_submit=True)
    async with with_spare(tmp_path, own, spare, clock) as shop:
        task = await shop.ended(await shop.accept(maker=SPARE))
        assert not shop.circuit._failures
        assert shop.catalog["spare"].upstream.circuit._failures == 4
        tries = attempts_of((await shop.row(task.id))["attempts"])
        assert [(one.number, one.outcome) for one in tries] == [(n, "failed") for n in (1, 2, 3)]
    assert (task.status, task.slug, task.attempt) == ("failed", "picture", 4)
    assert task.payment.state is PaymentState.REFUND_DUE
    assert task.refund.amount_units == task.payment.paid_units
    assert own.submits == []


@pytest.mark.parametrize(
    ("ratio", "details"), [("1:1", "provider_error"), ("16:9", "invalid_input")]
)
async def test_the_defaults_of_either_endpoint_are_no_choice_of_the_buyers(
    tmp_path, clock, ratio, details
):
    bought = attrs.evolve(
        ENDPOINT,
        slug="bought",
        aspect_ratio=Choice(values=("1:1", "16:9"), default="1:1"),
    )
    maker = attrs.evolve(
        bought,
        slug="maker",
        aspect_ratio=Choice(values=("1:1", "16:9"), default="16:9"),
        output_format=Choice(values=("png", "webp"), default="png"),
    )
    request = fill_defaults(GenerationRequest(prompt="a boat", aspect_ratio=ratio), maker)
    api = PlainApi(AccountProblem("no such ratio", scope="choice"))
    async with opened(tmp_path, PlainApi(), clock) as shop:
        shop.catalog.register(bought, shop.provider, "test")
        shop.catalog.register(maker, api, "test of maker")
        task = await shop.ended(await shop.accept(bought, maker=maker, request=request))
        assert task.details == details
        assert shop.catalog["maker"].works is (ratio == "16:9")


async def test_a_kill_between_submit_and_poll_resumes_with_the_fallback(tmp_path, clock):
    own, spare = JobApi(), JobApi()
    async with with_spare(tmp_path, own, spare, clock) as shop:
        task_id = await shop.accept(maker=SPARE)
        await until(lambda: spare.polls)
        await shop.crash()
    spare.usual = PICTURE
    async with with_spare(tmp_path, own, spare, clock) as shop:
        shop.circuit.trip("status 401", is_account=True)
        task = await shop.ended(task_id)
    assert (task.status, task.made_by) == ("completed", "spare")
    assert (len(spare.submits), own.submits, own.polls) == (1, [], [])


@pytest.mark.parametrize("known", ["picture", "spare"])
async def test_a_node_leases_only_the_makers_tasks(tmp_path, clock, known):
    # An earlier release leases by the same column, and knows no other.
    async with opened(tmp_path, PlainApi(), clock, start=False) as shop:
        await shop.accept(maker=SPARE)
        found = await shop.store.queue.lease(1, lease_s=60, now=clock(), known=[known])
    assert [lease.slug for lease in found] == (["spare"] if known == "spare" else [])


async def test_a_maker_whose_results_nothing_checks_makes_nothing_and_the_price_is_owed(
    tmp_path, clock
):
    sold = attrs.evolve(ENDPOINT, slug="sold", capability="text-to-song")
    maker = attrs.evolve(SPARE, capability=sold.capability)
    own, spare = PlainApi(), PlainApi(PICTURE)
    async with opened(tmp_path, own, clock, start=False, unknown_seen_s=0.0) as shop:
        for endpoint, api in ((sold, own), (maker, spare)):
            shop.catalog.register(endpoint, api, f"test of {endpoint.slug}")
        task_id = await shop.accept(sold, maker=maker)
        shop.pool.start()
        await shop.ended(await shop.accept(PAPER))
        (condition,) = await shop.pool.find_conditions()
        assert "cannot check their results: spare" in condition.text
        clock.offset_s += 6.1 * 3600
        await shop.pool.fail_unknown()
        await shop.pool.fail_unknown()
        task = await shop.ended(task_id)
    assert (task.slug, task.made_by, task.details) == ("sold", "spare", "provider_error")
    assert task.refund.amount_units == task.payment.paid_units
    assert (len(own.submits), spare.submits) == (1, [])
