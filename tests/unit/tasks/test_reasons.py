"""The operator's information about a task: provider, reason of failure, cost."""

import json

import attrs
import pytest

from gateway import AccountProblem, ContentPolicy, GenerationRequest, Result, SubmitUncertain
from gateway_vendors.refusals import note_answer
from tests.unit.tasks.engine_shop import PAPER, TEXT, PlainApi, opened


class Refusing(PlainApi):
    """A vendor's response with a status and a body, and an adapter that raises."""

    def __init__(self, status, body, error):
        super().__init__(TEXT)
        self.status, self.body = status, json.dumps(body).encode()
        self.error = error

    async def submit(self, request, job):
        note_answer(self.status, self.body)
        raise self.error


async def failed(tmp_path, clock, provider, **request):
    async with opened(tmp_path, provider, clock) as shop:
        task_id = await shop.accept(PAPER, **request)
        await shop.ended(task_id)
        return await shop.row(task_id)


async def test_a_failure_is_kept_in_the_vendors_words(tmp_path, clock):
    body = {"error": {"code": "invalid_api_key", "message": "Incorrect API key."}}
    provider = Refusing(401, body, AccountProblem("The provider answers with status 401."))
    row = await failed(tmp_path, clock, provider)
    assert row["reason"] == "status 401 invalid_api_key: Incorrect API key."
    assert row["provider"] == provider.name
    assert row["details"] == "provider_error"


async def test_a_refusal_without_words_keeps_what_the_adapter_says(tmp_path, clock):
    row = await failed(tmp_path, clock, Refusing(500, [], SubmitUncertain("No job came.")))
    assert row["reason"] == "status 500: No job came."


async def test_without_an_answer_the_reason_is_the_error(tmp_path, clock):
    class Silent(PlainApi):
        async def submit(self, request, job):
            raise ContentPolicy("We draw no boats.")

    row = await failed(tmp_path, clock, Silent(TEXT))
    assert row["reason"] == "ContentPolicy: We draw no boats."


@pytest.mark.parametrize(
    "body", [{"message": "x" * 5000}, {"message": "\ud800"}, {"code": "\ud800", "message": "x"}]
)
async def test_a_reason_is_short_and_can_be_stored(tmp_path, clock, body):
    row = await failed(tmp_path, clock, Refusing(400, body, SubmitUncertain("No.")))
    assert row["reason"].startswith("status 400")
    assert len(row["reason"]) <= 300


async def test_what_the_buyer_sent_is_not_repeated(tmp_path, clock):
    prompt = "a very secret boat on a lake"
    body = {"message": f"cannot draw: {prompt}"}
    provider = Refusing(400, body, SubmitUncertain("No."))
    row = await failed(tmp_path, clock, provider, request=GenerationRequest(prompt=prompt))
    assert prompt not in row["reason"]


async def test_a_cost_is_told_or_of_the_table(tmp_path, api, clock):
    by_pages = attrs.evolve(TEXT, cost_micros=30, is_cost_told=False)
    api.to_poll = [attrs.evolve(TEXT, cost_micros=12), by_pages, TEXT]
    async with opened(tmp_path, api, clock, cost_micros=777) as shop:
        rows = []
        for _ in range(3):
            task_id = await shop.accept(PAPER)
            await shop.ended(task_id)
            rows.append(await shop.row(task_id))
    assert [(row["cost_micros"], row["cost_source"]) for row in rows] == [
        (12, "told"),
        (30, "set"),
        (777, "table"),
    ]
    assert {row["provider"] for row in rows} == {api.name}


async def test_without_a_cost_its_source_is_unknown(tmp_path, api, clock):
    api.to_poll = [Result(text="x")]
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await shop.ended(task_id)
        row = await shop.row(task_id)
    assert (row["cost_micros"], row["cost_source"]) == (None, None)
