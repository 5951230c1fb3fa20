"""Scenes of the provider contract: what is made reaches the buyer."""

import json

import pytest

from gateway.domain import DOCUMENT_PARSING, TEXT_TO_IMAGE, Task
from gateway.sandbox.pictures import MEDIA_TYPES
from gateway.testing.fakes.api import MARKDOWN
from gateway.testing.fakes.server import FakeServer
from gateway.testing.provider.judging import (
    api_of,
    check_completed,
    check_failed,
    check_submits,
    good,
    is_idempotent,
    job_api_of,
)
from gateway.testing.provider.stage import Stage

_LINKS = (
    "Return `gateway.Link(url=…)` and leave fetching to the gateway, or let what "
    "`Outbound.download` raises pass."
)
_MANY = 10  # downloads of one file


class MakingScenes:
    """The good end, and files that cannot be had."""

    async def test_what_is_paid_for_is_delivered(self, stage: Stage) -> None:
        _begin(stage)
        task = await stage.bought()
        check_completed(task)
        assert task.attempt == 1, f"It took {task.attempt} attempts against an API that works."
        _check_result(stage, task)
        if stage.server is not None:
            check_submits(stage.server, 1, advice="One generation is one submit.")

    async def test_every_choice_on_sale_works(self, stage: Stage) -> None:
        _begin(stage)
        endpoint = stage.sold.endpoint
        choices = [
            {name: value}
            for name in ("aspect_ratio", "output_format", "resolution")
            for value in getattr(endpoint, name).values
        ]
        bought = [(choice, await stage.buy(**choice)) for choice in choices]
        for choice, task_id in bought:
            task = await stage.ended(task_id)
            assert task.result is not None, (
                f"{choice} is on sale, and a request for it ended as {task.details}."
            )
            if endpoint.capability == TEXT_TO_IMAGE and "output_format" in choice:
                (kept, *_) = task.result.outputs
                assert kept.media_type == MEDIA_TYPES[choice["output_format"]]

    async def test_the_buyers_words_reach_the_api(self, stage: Stage) -> None:
        server = api_of(stage)
        if "prompt" not in stage.sold.endpoint.required_fields:
            pytest.skip("the endpoint needs no prompt")
        _begin(stage)
        await stage.bought()
        prompt = stage.fields["prompt"]
        sent = [ask.body.decode(errors="replace") for ask in server.submitted]
        assert any(prompt in body or json.dumps(prompt)[1:-1] in body for body in sent), (
            "The prompt is not in the body that was submitted."
        )

    @pytest.mark.parametrize("files", ["first gone", "first page"])
    async def test_a_link_that_has_died_is_given_afresh_by_a_poll(
        self, stage: Stage, files: str
    ) -> None:
        server = job_api_of(stage)
        await _check_links(stage, server)
        server.files = files
        check_completed(await stage.bought())
        check_submits(server, 2, advice=f"A dead link is asked for anew by `poll`. {_LINKS}")

    @pytest.mark.parametrize("files", ["gone", "page", "endless"])
    async def test_a_file_that_cannot_be_had_is_paid_back(self, stage: Stage, files: str) -> None:
        server = api_of(stage)
        await _check_links(stage, server)
        server.files = files
        task = await stage.bought()
        check_failed(task, "provider_error", advice=_LINKS)
        assert len(server.fetched) < _MANY, f"It was fetched {len(server.fetched)} times. {_LINKS}"
        if is_idempotent(stage):
            return
        check_submits(server, 2, advice="What was made is not made again for a dead link.")

    async def test_a_picture_that_is_none_is_not_made_again(self, stage: Stage) -> None:
        server = api_of(stage)
        if stage.sold.endpoint.capability != TEXT_TO_IMAGE:
            pytest.skip("the endpoint sells no pictures")
        _begin(stage)
        server.made.picture, server.files = b"<html>Log in</html>", "page"
        advice = "What was made is billed: return it, and leave looking at it to the gateway."
        check_failed(await stage.bought(), "provider_error", advice=advice)
        if not is_idempotent(stage):
            check_submits(server, 1, advice=advice)


def _begin(stage: Stage) -> None:
    if stage.server is not None:
        stage.server.plays(good(stage), jobs=("waiting made",))


async def _check_links(stage: Stage, server: FakeServer) -> None:
    """Leave the scene out where the API gives no links: a first purchase tells."""
    _begin(stage)
    check_completed(await stage.bought())
    if not server.fetched:
        pytest.skip("the API gives bytes, no links (`made` takes no `ask.made.link`)")
    server.fetched.clear()


def _check_result(stage: Stage, task: Task) -> None:
    assert task.result is not None
    if stage.sold.endpoint.capability == DOCUMENT_PARSING:
        text = task.result.text or ""
        assert text, "A document became no text: return it as `Result(text=…)`."
        assert stage.server is None or MARKDOWN in text, (
            "The text is not what the API answered: is `ask.made.markdown` in your `made`?"
        )
    else:
        (kept, *_) = task.result.outputs
        assert kept.media_type == MEDIA_TYPES[stage.sold.endpoint.output_format.default or "png"]
