"""Scenes of the provider contract: the buyer gets the vendor's result."""

import base64
import json

import pytest

from gateway.domain import DATA, TEXT, Task
from gateway.sandbox.pictures import MEDIA_TYPES
from gateway_testing.fakes.api import EXTRACTED, MARKDOWN
from gateway_testing.fakes.server import FakeServer
from gateway_testing.provider.checks import (
    accepting_answer,
    api_of,
    check_completed,
    check_failed,
    check_submits,
    is_idempotent,
    job_api_of,
)
from gateway_testing.provider.gateway_under_test import GatewayUnderTest

_LINK_ADVICE = (
    "Return `gateway.Link(url=…)` and leave fetching to the gateway, or do not "
    "catch the errors of `Outbound.download`."
)
# More downloads of one file are too many.
_MANY = 10


class ResultScenes:
    """Delivered results, and files that cannot be fetched."""

    async def test_what_is_paid_for_is_delivered(self, gateway: GatewayUnderTest) -> None:
        _set_good_answers(gateway)
        task = await gateway.buy_and_wait()
        check_completed(task)
        assert task.attempt == 1, (
            f"The task took {task.attempt} attempts against an API that works."
        )
        await _check_result(gateway, task)
        if gateway.server is not None:
            check_submits(gateway.server, 1, advice="One generation is one submit.")

    async def test_every_choice_on_sale_works(self, gateway: GatewayUnderTest) -> None:
        _set_good_answers(gateway)
        endpoint = gateway.sold.endpoint
        choices = [
            {name: value}
            for name in ("aspect_ratio", "output_format", "resolution")
            for value in getattr(endpoint, name).values
        ]
        for choice in choices:
            task = await gateway.buy_and_wait(**choice)
            assert task.result is not None, (
                f"{choice} is on sale, and a request for it ended as {task.details}: {task.error} "
                "If the vendor's sizes are smaller than usual, declare them as `least_pixels`."
            )
            if endpoint.sells_pictures and "output_format" in choice:
                (kept, *_) = task.result.outputs
                _check_format(kept.media_type, choice["output_format"])

    async def test_the_buyers_words_reach_the_api(self, gateway: GatewayUnderTest) -> None:
        server = api_of(gateway)
        if "prompt" not in gateway.sold.endpoint.required_fields:
            pytest.skip("the endpoint needs no prompt")
        _set_good_answers(gateway)
        await gateway.buy_and_wait()
        prompt = gateway.fields["prompt"]
        sent = [
            text
            for ask in server.submitted
            for text in (ask.body.decode(errors="replace"), *ask.query.values())
        ]
        assert any(prompt in body or json.dumps(prompt)[1:-1] in body for body in sent), (
            "The prompt is not in what was submitted."
        )

    async def test_the_buyers_picture_reaches_the_api(self, gateway: GatewayUnderTest) -> None:
        server = api_of(gateway)
        if not gateway.sold.endpoint.edits_pictures:
            pytest.skip("the endpoint edits no pictures")
        _set_good_answers(gateway)
        await gateway.buy_and_wait()
        picture = gateway.fields["file"]
        forms = (picture, base64.b64encode(picture), base64.urlsafe_b64encode(picture))
        sent = [ask.body for ask in (*server.uploaded, *server.submitted)]
        assert any(form in body for form in forms for body in sent), (
            "The picture is in no body that was submitted or uploaded, neither as bytes nor as "
            "Base64."
        )

    @pytest.mark.parametrize("files", ["first gone", "first page"])
    async def test_a_link_that_has_died_is_given_afresh_by_a_poll(
        self, gateway: GatewayUnderTest, files: str
    ) -> None:
        server = job_api_of(gateway)
        await _check_links(gateway, server)
        server.files = files
        check_completed(await gateway.buy_and_wait(), advice=_LINK_ADVICE)
        check_submits(
            server, 2, advice=f"`poll` asks for a new link if the old one is dead. {_LINK_ADVICE}"
        )

    @pytest.mark.parametrize("files", ["gone", "page", "endless"])
    async def test_a_file_that_cannot_be_had_is_paid_back(
        self, gateway: GatewayUnderTest, files: str
    ) -> None:
        server = api_of(gateway)
        await _check_links(gateway, server)
        server.files = files
        task = await gateway.buy_and_wait()
        check_failed(task, "provider_error", advice=_LINK_ADVICE)
        assert len(server.fetched) < _MANY, (
            f"It was fetched {len(server.fetched)} times. {_LINK_ADVICE}"
        )
        if is_idempotent(gateway):
            return
        check_submits(server, 2, advice="A dead link does not have the result made again.")

    async def test_a_picture_that_is_none_is_not_made_again(
        self, gateway: GatewayUnderTest
    ) -> None:
        server = api_of(gateway)
        if not gateway.sold.endpoint.sells_pictures:
            pytest.skip("the endpoint sells no pictures")
        _set_good_answers(gateway)
        server.made.picture, server.files = b"<html>Log in</html>", "page"
        advice = "The result is billed: return it, and let the gateway check it."
        check_failed(await gateway.buy_and_wait(), "provider_error", advice=advice)
        if not is_idempotent(gateway):
            check_submits(server, 1, advice=advice)


def _set_good_answers(gateway: GatewayUnderTest) -> None:
    if gateway.server is not None:
        gateway.server.set_answers(accepting_answer(gateway), jobs=("waiting made",))


async def _check_links(gateway: GatewayUnderTest, server: FakeServer) -> None:
    """Skip the scene if the API gives no links; a first purchase shows whether it does."""
    _set_good_answers(gateway)
    check_completed(await gateway.buy_and_wait())
    if not server.fetched:
        pytest.skip("the API gives bytes, no links (`made` takes no `ask.made.link`)")
    server.fetched.clear()


def _check_format(kept: str, wanted: str) -> None:
    assert kept == MEDIA_TYPES[wanted], (
        f"The buyer chose {wanted} and got {kept}. The gateway converts a picture: return it as "
        "`Output(data=…, media_type=…)` in `outputs`, or as `Link`."
    )


async def _check_result(gateway: GatewayUnderTest, task: Task) -> None:
    assert task.result is not None
    results = gateway.sold.endpoint.declaration.results
    if results == (DATA,):
        await _check_extracted(gateway, task)
    elif TEXT in results:
        text = await gateway.text_of(task)
        assert text, "A document became no text: return it as `Result(text=…)`."
        assert gateway.server is None or MARKDOWN in text, (
            "The text is not what the API answered: is `ask.made.markdown` in your `made`?"
        )
    elif not gateway.sold.endpoint.sells_pictures and results:
        known = [media_type for kind in results for media_type in kind.media_types]
        assert all(one.media_type in known for one in task.result.outputs), (
            f"An output is none of {', '.join(known)}: name its media type in the `ResultKind`."
        )
    else:
        (kept, *_) = task.result.outputs
        _check_format(kept.media_type, gateway.sold.endpoint.output_format.default or "png")


async def _check_extracted(gateway: GatewayUnderTest, task: Task) -> None:
    assert task.result is not None
    (kept,) = task.result.outputs
    assert kept.media_type == "application/json", (
        f"The data became {kept.media_type}: return the JSON as `Result(text=…)`."
    )
    found = json.loads(await gateway.text_of(task))
    length = json.dumps(EXTRACTED["length"])
    assert gateway.server is None or length in json.dumps(found), (
        "The JSON is not what the API answered: is `ask.made.extracted` in your `made`?"
    )
