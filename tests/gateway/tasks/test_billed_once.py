"""A sale is submitted again only after a definite refusal, or if nothing is billed."""

import asyncio
import socket

import attrs
import pytest
import structlog

from gateway import (
    GenerationRequest,
    JobFailed,
    LinkDead,
    NotAccepted,
    Outbound,
    Output,
    Result,
    ResultUnusable,
    Transient,
)
from tests.unit.tasks.engine_shop import ENDPOINT, PAPER, PICTURE, TEXT, JobApi, PlainApi, opened

PAGE = Result(outputs=(Output(data=b"<html>Log in</html>", media_type="image/png"),))


@attrs.define
class Asking:
    """A step of a provider that uses its API by `Outbound`, and then acts on demand."""

    outbound: Outbound
    after: object
    method: str = "POST"
    bills: bool | None = None
    in_a_task: bool = False

    async def __call__(self, request, job):
        asking = self.outbound.request(self.method, "/orders", bills=self.bills)
        answer = await (asyncio.create_task(asking) if self.in_a_task else asking)
        if isinstance(self.after, BaseException):
            raise self.after
        answer.check()
        return self.after


@pytest.fixture
async def api(httpserver):
    outbound = Outbound(httpserver.url_for(""))
    yield httpserver, outbound
    await outbound.close()


def orders(httpserver):
    return sum(request.path == "/orders" for request, _ in httpserver.log)


async def sold(tmp_path, clock, provider, endpoint=PAPER, **options):
    async with opened(tmp_path, provider, clock, **options) as shop:
        return await shop.ended(await shop.accept(endpoint))


# -- a submit that went out


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 520, 524, 599])
async def test_an_order_that_is_answered_with_an_error_of_the_server_is_sent_once(
    tmp_path, clock, api, status
):
    server, outbound = api
    server.expect_request("/orders").respond_with_data("<html>", status=status)
    task = await sold(tmp_path, clock, PlainApi(*[Asking(outbound, TEXT)] * 4))
    assert (orders(server), task.details, task.payment.state) == (
        1,
        "uncertain_submit",
        "refund_due",
    )


@pytest.mark.parametrize("in_a_task", [False, True], ids=["itself", "in a task of its own"])
@pytest.mark.parametrize("error", [KeyError("id"), Transient("busy"), OSError("?")])
async def test_whatever_a_plugin_raises_after_its_order_went_out_the_order_is_sent_once(
    tmp_path, clock, api, error, in_a_task
):
    server, outbound = api
    server.expect_request("/orders").respond_with_json({})
    provider = PlainApi(*[Asking(outbound, error, in_a_task=in_a_task)] * 4)
    task = await sold(tmp_path, clock, provider)
    assert (orders(server), task.details) == (1, "uncertain_submit")


@pytest.mark.parametrize("error", [KeyError("id"), ConnectionResetError(), RuntimeError("bug")])
async def test_a_plugin_with_a_client_of_its_own_is_not_believed_to_have_sent_nothing(
    tmp_path, clock, error
):
    provider = PlainApi(*[error] * 4)
    task = await sold(tmp_path, clock, provider)
    assert (len(provider.submits), task.details) == (1, "uncertain_submit")


async def test_a_submit_that_bills_nothing_is_sent_again_whatever_it_raised(tmp_path, clock, api):
    server, outbound = api
    server.expect_request("/orders").respond_with_data("", status=502)
    provider = PlainApi(Asking(outbound, TEXT), KeyError("id"), idempotent_submit=True)
    task = await sold(tmp_path, clock, provider)
    assert (task.status, task.attempt) == ("completed", 3)


# -- definite refusals


@pytest.mark.parametrize("error", [NotAccepted("503 means not taken"), JobFailed("it failed")])
async def test_an_order_that_was_refused_for_certain_is_sent_again(tmp_path, clock, api, error):
    server, outbound = api
    server.expect_request("/orders").respond_with_data("", status=503)
    task = await sold(tmp_path, clock, PlainApi(Asking(outbound, error)))
    assert (task.status, task.attempt, orders(server)) == ("completed", 2, 1)


async def test_an_api_that_takes_no_connection_is_asked_again(tmp_path, clock):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        outbound = Outbound(f"http://127.0.0.1:{closed.getsockname()[1]}")
    provider = PlainApi(Asking(outbound, TEXT))
    task = await sold(tmp_path, clock, provider)
    await outbound.close()
    assert (task.status, task.attempt) == ("completed", 2)


async def test_a_get_that_has_something_made_is_sent_once(tmp_path, clock, api):
    server, outbound = api
    server.expect_request("/orders").respond_with_data("", status=502)
    provider = PlainApi(*[Asking(outbound, TEXT, "GET", bills=True)] * 4)
    task = await sold(tmp_path, clock, provider)
    assert (orders(server), task.details) == (1, "uncertain_submit")


@pytest.mark.parametrize(
    ("method", "bills"), [("POST", False), ("GET", None)], ids=["an upload", "a question"]
)
async def test_trouble_after_what_bills_nothing_is_tried_again(tmp_path, clock, api, method, bills):
    server, outbound = api
    server.expect_request("/orders").respond_with_data("", status=502)
    provider = PlainApi(Asking(outbound, TEXT, method, bills))
    task = await sold(tmp_path, clock, provider)
    assert (task.status, task.attempt) == ("completed", 2)


# -- a result that cannot be sold


@pytest.mark.parametrize(
    "made", [PAGE, "no result", Result(outputs=(7,)), Result(text="\ud800")], ids=str
)
async def test_a_result_of_no_use_is_owed_back_and_not_made_again(tmp_path, clock, made):
    provider = PlainApi(*[made] * 4)
    task = await sold(tmp_path, clock, provider, ENDPOINT)
    assert len(provider.submits) == 1
    assert (task.details, task.payment.state) == ("provider_error", "refund_due")


async def test_a_result_of_no_use_is_made_again_where_that_bills_nothing(tmp_path, clock):
    provider = PlainApi(PAGE, PICTURE, idempotent_submit=True)
    task = await sold(tmp_path, clock, provider, ENDPOINT)
    assert (task.status, len(provider.submits)) == ("completed", 2)


async def test_a_job_whose_picture_is_none_is_not_begun_anew(tmp_path, clock):
    provider = JobApi()
    provider.usual = PAGE
    task = await sold(tmp_path, clock, provider, ENDPOINT)
    assert (len(provider.submits), task.details) == (1, "provider_error")
    assert "cannot be decoded" in task.error


async def test_an_author_says_why_a_result_cannot_be_sold(tmp_path, clock):
    provider = JobApi()
    provider.to_poll = [ResultUnusable("The file is larger than what is sold.")]
    task = await sold(tmp_path, clock, provider)
    assert (len(provider.submits), len(provider.polls)) == (1, 1)
    assert (task.details, task.error) == ("provider_error", "The file is larger than what is sold.")


@pytest.mark.parametrize(("dead", "status", "polls"), [(2, "completed", 3), (9, "failed", 3)])
async def test_a_job_is_asked_three_times_for_a_link_that_works(
    tmp_path, clock, dead, status, polls
):
    provider = JobApi()
    provider.to_poll = [LinkDead("The link is dead.")] * dead
    provider.usual = TEXT
    task = await sold(tmp_path, clock, provider)
    assert (task.status, len(provider.submits), len(provider.polls)) == (status, 1, polls)
    assert task.error == (None if status == "completed" else "The link is dead.")


async def test_a_dead_link_is_the_reason_also_where_the_time_ends_meanwhile(tmp_path, clock):
    provider = JobApi()
    clock.frozen_at = clock()

    async def dies_late(handle, job):
        clock.offset_s += 10  # past the endpoint's time, and within the lease
        raise LinkDead("The link is dead.")

    provider.to_poll = [dies_late]
    task = await sold(tmp_path, clock, provider, timeout_s=5.0)
    assert (task.details, task.error) == ("provider_error", "The link is dead.")


# -- the log


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("", None, "The provider answers with status 502."),
        ("<html>Bad gateway</html>", None, "The provider answers with status 502."),
        ("Over\nloaded", None, "Over loaded"),
        ('{"error": {"code": "busy", "message": "Too many orders."}}', "busy", "Too many orders."),
        ('{"detail": [{"type": "late", "msg": "Come back."}]}', "late", "Come back."),
        ('{"message": "' + "x" * 900 + '"}', None, "x" * 200),
    ],
    ids=["nothing", "a page", "text", "JSON", "a list", "long"],
)
async def test_the_log_shows_what_the_vendor_said(tmp_path, clock, api, body, code, message):
    server, outbound = api
    server.expect_request("/orders").respond_with_data(body, status=502)
    with structlog.testing.capture_logs() as lines:
        await sold(tmp_path, clock, PlainApi(Asking(outbound, TEXT)))
    (line,) = [line for line in lines if line["event"] == "task.attempt_failed"]
    assert (line["plugin"], line["error"]) == ("test", "SubmitUncertain")
    assert (line["status"], line.get("vendor_code"), line["vendor_message"]) == (502, code, message)
    assert "at" not in line


@pytest.mark.parametrize("quoted", [repr, str], ids=["as Python writes it", "as it is"])
async def test_a_sentence_that_quotes_the_prompt_is_not_logged(tmp_path, clock, quoted):
    async def quotes(request, job):
        raise ValueError(f"cannot draw {quoted(request.prompt)}")

    secret = GenerationRequest(prompt="it\n'is' \"mine\" alone, and nobody else's")
    with structlog.testing.capture_logs() as lines:
        async with opened(tmp_path, PlainApi(quotes), clock) as shop:
            await shop.ended(await shop.accept(PAPER, request=secret))
    (line,) = [line for line in lines if line["event"] == "task.attempt_failed"]
    assert line["error"] == "ValueError"
    assert line.get("vendor_message", "").strip("'") in ("", "cannot draw …", "cannot draw '…")
    # The innermost line in the package of the provider's class, which is `tests`.
    assert "/test_billed_once.py:" in line["at"]
