"""Scenes of the provider contract: a submit whose answer never came is not sent again."""

import pytest

from gateway.testing.judging import (
    api_of,
    check_completed,
    check_failed,
    check_submits,
    good,
    is_idempotent,
)
from gateway.testing.stage import Stage

_ADVICE = (
    "Where a submit went out and nobody knows what came of it, `submit` raises SubmitUncertain: "
    "`Outbound.request` does, and `Answer.submit_json` for a success that cannot be read. Only "
    "`Traits(idempotent_submit=True)` has it sent again."
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
