"""Scenes of the provider contract: a submit without a response is not sent again."""

import pytest

from gateway.domain import PaymentState, Task
from gateway_testing.fakes.server import FakeServer
from gateway_testing.provider.checks import (
    accepting_answer,
    api_of,
    check_completed,
    check_failed,
    check_submits,
    is_idempotent,
)
from gateway_testing.provider.gateway_under_test import GatewayUnderTest

_IDEMPOTENT_ADVICE = (
    "`Traits(idempotent_submit=True)` declares that the vendor bills the same submit once: it is "
    "sent again after every failure."
)
_ADVICE = (
    "If a submit went out and its outcome is not known, `submit` raises SubmitUncertain, as "
    "`Outbound.request` does, and `Answer.submit_json` for a success that cannot be read. Only "
    "with `Traits(idempotent_submit=True)` is it sent again."
)
_ERRORS = ("error 500", "error 502", "error 504", "error 524")
_SERVER_ERROR_ADVICE = (
    "A server, or a proxy before it, may respond so after the order was taken and billed: leave it "
    "to `answer.check()`, which raises SubmitUncertain. NotAccepted, RateLimited and JobFailed are "
    "for answers of which the vendor documents that nothing is billed."
)
_UNKNOWN_SHAPE_ADVICE = (
    "After a success response the result was made and billed, whatever its shape: raise "
    "SubmitUncertain for a shape that you do not know."
)


class SubmitScenes:
    """The vendor makes and bills nothing twice."""

    @pytest.mark.parametrize("answer", ["dropped", "garbage", "endless"])
    async def test_a_submit_without_a_whole_answer(
        self, gateway: GatewayUnderTest, answer: str
    ) -> None:
        server = api_of(gateway)
        server.set_answers(answer, accepting_answer(gateway), jobs=("made",))
        _check_unknown_outcome(gateway, server, await gateway.buy_and_wait(), _ADVICE)

    @pytest.mark.parametrize("answer", ["broken", *_ERRORS])
    async def test_a_submit_that_is_answered_with_an_error_of_the_server(
        self, gateway: GatewayUnderTest, answer: str
    ) -> None:
        server = api_of(gateway, answer)
        server.set_answers(answer, accepting_answer(gateway), jobs=("made",))
        task = await gateway.buy_and_wait()
        _check_unknown_outcome(gateway, server, task, _SERVER_ERROR_ADVICE)

    @pytest.mark.parametrize("answer", ["null", "[]", "7", '{"id": [null]}'])
    async def test_a_success_of_another_shape_is_not_asked_for_again(
        self, gateway: GatewayUnderTest, answer: str
    ) -> None:
        server = api_of(gateway)
        server.set_answers(f"json {answer}")
        task = await gateway.buy_and_wait()
        assert task.payment.state is PaymentState.REFUND_DUE, "No refund is due to the buyer."
        if not is_idempotent(gateway):
            check_submits(server, 1, advice=_UNKNOWN_SHAPE_ADVICE)

    @pytest.mark.parametrize("end", ["stop", "power cut"])
    async def test_a_gateway_that_ends_in_mid_submit(
        self, gateway: GatewayUnderTest, end: str
    ) -> None:
        server = api_of(gateway)
        server.set_answers("held", accepting_answer(gateway), jobs=("made",))
        task_id = await gateway.buy()
        async for _ in gateway.wait_for("the provider to submit"):
            if server.submitted:
                break
        await (gateway.restart() if end == "stop" else gateway.crash_and_restart())
        server.end()
        _check_unknown_outcome(gateway, server, await gateway.wait_for_end(task_id), _ADVICE)


def _check_unknown_outcome(
    gateway: GatewayUnderTest, server: FakeServer, task: Task, advice: str
) -> None:
    """Check that a task without an answer to its submit is sent again only if that is free."""
    if is_idempotent(gateway):
        check_completed(task, advice=_IDEMPOTENT_ADVICE)
        check_submits(server, 2, advice=_IDEMPOTENT_ADVICE)
    else:
        check_submits(server, 1, advice=advice)
        check_failed(task, "uncertain_submit", advice=advice)
