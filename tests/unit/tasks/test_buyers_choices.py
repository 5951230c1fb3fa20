"""A model refuses a buyer's own choice: his task fails, and the endpoint sells on."""

import attrs
import pytest

from gateway import AccountProblem, Attachment, GenerationRequest
from gateway.domain import Choice
from gateway_testing.facts import ENDPOINT
from tests.unit.tasks.engine_shop import PICTURE, JobApi, PlainApi, opened

CHOOSING = attrs.evolve(
    ENDPOINT,
    slug="choosing",
    aspect_ratio=Choice(values=("1:1", "16:9"), default="1:1"),
    resolution=Choice(values=("1K", "4K"), default="1K"),
    output_format=Choice(values=("png", "webp"), default="png"),
    least_pixels={"1K": 1},
    file_extensions=(".png",),
)
PLAIN = GenerationRequest(prompt="a boat", aspect_ratio="1:1", resolution="1K", output_format="png")
CHOSEN = {
    "a ratio": {"aspect_ratio": "16:9"},
    "a resolution": {"resolution": "4K"},
    "a format": {"output_format": "webp"},
    "a file": {"attachment": Attachment(name="a.png", data=b"odd")},
}
REFUSED = AccountProblem("The model does not take our size.", scope="choice")


async def _sell(shop, request):
    if "choosing" not in {one.endpoint.slug for one in shop.catalog.everything()}:
        shop.catalog.register(CHOOSING, shop.provider, "test")
    return await shop.ended(await shop.accept(CHOOSING, request=request))


@pytest.mark.parametrize("choice", CHOSEN.values(), ids=CHOSEN)
async def test_a_choice_that_is_refused_fails_its_task_alone(tmp_path, clock, choice):
    api = PlainApi(REFUSED, PICTURE)
    async with opened(tmp_path, api, clock) as shop:
        task = await _sell(shop, attrs.evolve(PLAIN, **choice))
        assert (task.details, task.refund.amount_units) == ("invalid_input", 20_000)
        assert "does not take this ratio, resolution, format or file" in task.error
        assert shop.catalog["choosing"].sells_now
        assert (await _sell(shop, PLAIN)).status == "completed"


async def test_what_is_refused_of_a_plain_request_is_refused_of_all(tmp_path, clock):
    async with opened(tmp_path, PlainApi(REFUSED), clock) as shop:
        task = await _sell(shop, PLAIN)
        assert task.details == "provider_error"
        assert not shop.catalog["choosing"].sells_now
        assert not shop.circuit.is_open


async def test_a_job_that_ends_with_a_refused_choice_is_not_polled_on(tmp_path, clock):
    api = JobApi()
    api.to_poll = [REFUSED]
    async with opened(tmp_path, api, clock) as shop:
        task = await _sell(shop, attrs.evolve(PLAIN, aspect_ratio="16:9"))
        assert task.details == "invalid_input"
        assert len(api.polls) == 1
        assert shop.catalog["choosing"].sells_now
