"""Scenes of the provider contract: jobs that take their time, and gateways that do not last."""

import pytest

from gateway.contracts import Cancelling
from gateway.testing.fakes.server import FakeServer
from gateway.testing.provider.judging import (
    check_completed,
    check_failed,
    check_submits,
    is_idempotent,
    job_api_of,
)
from gateway.testing.provider.stage import Stage

_ONE = "A job that was begun is polled, never submitted again: keep all it takes in the Handle."


class WaitingScenes:
    """Only for providers with `poll`."""

    async def test_a_slow_job_is_waited_for(self, stage: Stage) -> None:
        server = job_api_of(stage)
        server.plays("accepted", jobs=("waiting waiting waiting made",))
        check_completed(await stage.bought())
        check_submits(server, 1, advice=_ONE)
        assert len(server.polled) > 3, "`poll` returned a result before the API was done."

    @pytest.mark.parametrize("end", ["stop", "power cut"])
    async def test_a_restart_in_mid_job_goes_on_with_it(self, stage: Stage, end: str) -> None:
        server = job_api_of(stage)
        task_id = await _begun(stage, server)
        await (stage.restart() if end == "stop" else stage.die_and_start())
        server.plays(jobs=("waiting made",))
        check_completed(await stage.ended(task_id), advice=_ONE)
        check_submits(server, 1, advice=_ONE)

    async def test_a_poll_that_fails_never_submits(self, stage: Stage) -> None:
        server = job_api_of(stage)
        server.plays("accepted", jobs=("broken dropped limited garbage waiting made",))
        advice = (
            "`poll` raises Transient or RateLimited for a moment's trouble, and JobFailed, "
            "ContentPolicy, InvalidInput or HandleLost only where the API says so of the job."
        )
        check_completed(await stage.bought(), advice=advice)
        check_submits(server, 1, advice=advice)

    async def test_a_job_that_failed_is_submitted_anew(self, stage: Stage) -> None:
        server = job_api_of(stage, "failed")
        server.plays("accepted", jobs=("failed", "made"))
        advice = "`poll` raises JobFailed where the job itself failed."
        check_completed(await stage.bought(), advice=advice)
        check_submits(server, 2, advice=advice)

    async def test_a_job_that_is_lost_is_paid_back_or_begun_anew_where_that_is_free(
        self, stage: Stage
    ) -> None:
        server = job_api_of(stage, "lost")
        server.plays("accepted", jobs=("waiting lost", "made"))
        advice = "`poll` raises HandleLost where the API does not know its own job."
        if is_idempotent(stage):
            check_completed(await stage.bought(), advice=advice)
            check_submits(server, 2, advice="An idempotent submit is simply sent again.")
            return
        check_failed(await stage.bought(), "uncertain_submit", advice=advice)
        check_submits(server, 1, advice=advice)

    async def test_a_job_that_takes_too_long_is_given_up(self, stage: Stage) -> None:
        server = job_api_of(stage)
        provider, traits = stage.sold.upstream.provider, stage.sold.upstream.traits
        task_id = await _begun(stage, server)
        stage.clock.ahead_s += stage.sold.endpoint.timeout_s
        if isinstance(provider, Cancelling):
            async for _ in stage.looks("a request that matches `cancel` of your FakeApi"):
                if server.cancelled:
                    break
        if isinstance(provider, Cancelling) and traits.cancellable:
            server.plays(jobs=("made",))
            check_completed(await stage.ended(task_id))
            check_submits(server, 2, advice="A job that was stopped for certain is begun anew.")
            return
        advice = "A job that may still be made and billed is not begun anew."
        check_failed(await stage.ended(task_id), "timed_out", advice=advice)
        check_submits(server, 1, advice=advice)


async def _begun(stage: Stage, server: FakeServer) -> str:
    """Buy, and return the task once its job is polled."""
    server.plays("accepted", jobs=("waiting",))
    task_id = await stage.buy()
    async for _ in stage.looks("the provider to submit, and then to poll"):
        if len(server.polled) > 1:
            break
    return task_id
