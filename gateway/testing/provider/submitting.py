"""Scenes of the provider contract: a submit whose answer never came is not sent again."""

import pytest

from gateway.domain import PaymentState
from gateway.testing.provider.judging import (
    api_of,
    check_completed,
    check_failed,
    check_submits,
    good,
    is_idempotent,
)
from gateway.testing.provider.stage import Stage

_ADVICE = (
    "Where a submit went out and nobody knows what came of it, `submit` raises SubmitUncertain: "
    "`Outbound.request` does, and `Answer.submit_json` for a success that cannot be read. Only "
    "`Traits(idempotent_submit=True)` has it sent again."
)
_ERRORS = ("error 500", "error 502", "error 504", "error 524")
_TAKEN = (
    "A server, or a proxy before it, may answer so after the order was taken and billed: leave it "
    "to `answer.check()`, which raises SubmitUncertain. NotAccepted, RateLimited and JobFailed are "
    "for answers of which the vendor documents that nothing is billed."
)
_ODD = (
    "What was answered with success was made and billed, whatever the answer looks like: raise "
    "SubmitUncertain for a shape that you do not know."
)


class SubmittingScenes:
    """Nothing is made, and billed, twice."""

    @pytest.mark.parametrize("answer", ["dropped", "garbage", "endless"])
    async def test_a_submit_without_a_whole_answer(self, stage: Stage, answer: str) -> None:
        server = api_of(stage)
        server.plays(answer, good(stage), jobs=("made",))
        task = await stage.bought()
        if is_idempotent(stage):
            check_completed(task)
            check_submits(server, 2, advice="An idempotent submit is simply sent again.")
        else:
            check_failed(task, "uncertain_submit", advice=_ADVICE)
            check_submits(server, 1, advice=_ADVICE)

    @pytest.mark.parametrize("answer", ["broken", *_ERRORS])
    async def test_a_submit_that_is_answered_with_an_error_of_the_server(
        self, stage: Stage, answer: str
    ) -> None:
        server = api_of(stage, answer)
        server.plays(answer, good(stage), jobs=("made",))
        task = await stage.bought()
        if is_idempotent(stage):
            check_completed(task)
            check_submits(server, 2, advice="An idempotent submit is simply sent again.")
        else:
            check_submits(server, 1, advice=_TAKEN)
            check_failed(task, "uncertain_submit", advice=_TAKEN)

    @pytest.mark.parametrize("answer", ["null", "[]", "7", '{"id": [null]}'])
    async def test_a_success_of_another_shape_is_not_asked_for_again(
        self, stage: Stage, answer: str
    ) -> None:
        server = api_of(stage)
        server.plays(f"json {answer}")
        task = await stage.bought()
        assert task.payment.state is PaymentState.REFUND_DUE, "The buyer's money is not owed back."
        if not is_idempotent(stage):
            check_submits(server, 1, advice=_ODD)

    @pytest.mark.parametrize("end", ["stop", "power cut"])
    async def test_a_gateway_that_ends_in_mid_submit(self, stage: Stage, end: str) -> None:
        server = api_of(stage)
        server.plays("held", good(stage), jobs=("made",))
        task_id = await stage.buy()
        async for _ in stage.looks("the provider to submit"):
            if server.submitted:
                break
        await (stage.restart() if end == "stop" else stage.die_and_start())
        server.end()
        task = await stage.ended(task_id)
        if is_idempotent(stage):
            check_completed(task)
            check_submits(server, 2, advice="An idempotent submit is simply sent again.")
        else:
            check_failed(task, "uncertain_submit", advice=_ADVICE)
            check_submits(server, 1, advice=_ADVICE)
