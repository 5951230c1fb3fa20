"""A result that was not ordered is a failure: retried where that is free, else a refund due."""

import io

import attrs
import pytest
from PIL import Image

from gateway import GenerationRequest, Output, Result
from gateway.domain import Choice
from gateway_testing.fakes.api import picture_of
from tests.patience import until
from tests.unit.tasks.engine_shop import ENDPOINT, PAPER, JobApi, PlainApi, opened

BIG = attrs.evolve(
    ENDPOINT,
    slug="big",
    aspect_ratio=Choice(values=("1:1", "9:16"), default="1:1"),
    resolution=Choice(values=("1K", "4K"), default="1K"),
)
FOUR_K = GenerationRequest(prompt="a boat", aspect_ratio="1:1", resolution="4K")
TALL = GenerationRequest(prompt="a boat", aspect_ratio="9:16", resolution="1K")


def flat(colour):
    file = io.BytesIO()
    Image.new("RGB", (1024, 1024), colour).save(file, "PNG")
    return file.getvalue()


def pictured(data, **facts):
    return Result(outputs=(Output(data=data, media_type="image/png"),), **facts)


SMALL = pictured(picture_of(1024, 1024))
BAD = {
    "1K for 4K": (BIG, FOUR_K, SMALL, "1024 x 1024 pixels"),
    "16:9 for 9:16": (BIG, TALL, pictured(picture_of(1376, 768)), "9:16 was ordered"),
    "all black": (ENDPOINT, None, pictured(flat("black")), "one flat colour"),
    "no words": (PAPER, None, Result(text="![img-0.jpeg](img-0.jpeg)"), "no text"),
}


async def sell(shop, endpoint=BIG, request=FOUR_K):
    if endpoint.slug not in {one.endpoint.slug for one in shop.catalog.everything()}:
        shop.catalog.register(endpoint, shop.provider, "test")
    wanted = {} if request is None else {"request": request}
    return await shop.ended(await shop.accept(endpoint, **wanted))


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
async def test_a_billed_result_is_not_made_again_and_a_refund_is_due(tmp_path, clock, case):
    endpoint, request, bad, reason = case
    api = PlainApi(bad)
    async with opened(tmp_path, api, clock) as shop:
        task = await sell(shop, endpoint, request)
        assert (task.status, task.details) == ("failed", "provider_error")
        assert task.refund.amount_units == 20_000
        assert reason in (await shop.row(task.id))["reason"]
    assert len(api.submits) == 1


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
async def test_where_it_bills_nothing_it_is_made_again(tmp_path, clock, case):
    endpoint, request, bad, _ = case
    for good, count in ((None, 4), (Result(text="# A"), 2)):
        if good is not None and endpoint is not PAPER:
            continue
        api = PlainApi(bad, *([good] if good else [bad] * 3), idempotent_submit=True)
        async with opened(tmp_path / str(count), api, clock) as shop:
            task = await sell(shop, endpoint, request)
            assert (task.status, task.attempt) == ("completed" if good else "failed", count)
        assert len(api.submits) == count


async def test_unusable_results_of_fewer_than_five_tasks_leave_the_endpoint_on_sale(
    tmp_path, clock
):
    blank = Result(text="![img-0.jpeg](img-0.jpeg)")
    api = PlainApi(*[blank] * 20, idempotent_submit=True)
    async with opened(tmp_path, api, clock) as shop:
        for _ in range(4):
            assert (await sell(shop, PAPER, None)).status == "failed"
        assert shop.catalog["paper"].sells_now
        await shop.accept(PAPER)
        await until(lambda: not shop.catalog["paper"].sells_now)


@pytest.mark.parametrize(
    ("cost", "is_told", "submits"), [(0, True, 2), (0, False, 1), (9, True, 1)]
)
async def test_what_the_vendor_reports_as_free_is_made_again(
    tmp_path, clock, cost, is_told, submits
):
    bad = attrs.evolve(SMALL, cost_micros=cost, is_cost_told=is_told)
    api = PlainApi(bad, pictured(picture_of(2880, 2880)))
    async with opened(tmp_path, api, clock) as shop:
        task = await sell(shop)
        assert task.status == ("completed" if submits > 1 else "failed")
    assert len(api.submits) == submits


async def test_a_vendor_that_keeps_sending_less_goes_off_sale_with_this_endpoint_alone(
    tmp_path, clock
):
    async with opened(tmp_path, PlainApi(*[SMALL] * 5), clock) as shop:
        for _ in range(5):
            assert (await sell(shop)).status == "failed"
        assert not shop.catalog["big"].sells_now
        assert "4K was ordered" in shop.catalog["big"].circuit.problem
        assert shop.catalog["paper"].sells_now


async def test_a_job_with_another_result_is_not_polled_for_it_again(tmp_path, clock):
    api = JobApi()
    api.to_poll = [SMALL]
    async with opened(tmp_path, api, clock) as shop:
        assert (await sell(shop)).details == "provider_error"
    assert (len(api.submits), len(api.polls)) == (1, 1)
