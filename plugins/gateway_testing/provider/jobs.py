"""Scenes of the provider contract: slow, failed and lost jobs, and restarts during a job."""

import pytest

from gateway.contracts import Cancelling
from gateway_testing.fakes.server import FakeServer
from gateway_testing.provider.checks import (
    check_completed,
    check_failed,
    check_submits,
    is_idempotent,
    job_api_of,
)
from gateway_testing.provider.gateway_under_test import GatewayUnderTest

_ONE_SUBMIT = (
    "A job that was begun is polled, never submitted again: keep all it takes in the Handle."
)


class JobScenes:
    """Only for providers with `poll`."""

    async def test_a_slow_job_is_waited_for(self, gateway: GatewayUnderTest) -> None:
        server = job_api_of(gateway)
        server.set_answers("accepted", jobs=("waiting waiting waiting made",))
        advice = "Return `gateway.Pending()` from `poll` while the job is not done."
        check_completed(await gateway.buy_and_wait(), advice=advice)
        check_submits(server, 1, advice=_ONE_SUBMIT)
        assert len(server.polled) > 3, "`poll` returned a result before the API was done."

    @pytest.mark.parametrize("end", ["stop", "power cut"])
    async def test_a_restart_in_mid_job_goes_on_with_it(
        self, gateway: GatewayUnderTest, end: str
    ) -> None:
        server = job_api_of(gateway)
        task_id = await _begin_job(gateway, server)
        await (gateway.restart() if end == "stop" else gateway.crash_and_restart())
        server.set_answers(jobs=("waiting made",))
        check_completed(await gateway.wait_for_end(task_id), advice=_ONE_SUBMIT)
        check_submits(server, 1, advice=_ONE_SUBMIT)

    async def test_a_poll_that_fails_never_submits(self, gateway: GatewayUnderTest) -> None:
        server = job_api_of(gateway)
        server.set_answers("accepted", jobs=("broken dropped limited garbage waiting made",))
        advice = (
            "`poll` raises Transient or RateLimited for a temporary problem, and JobFailed, "
            "ContentPolicy, InvalidInput or HandleLost only if the API reports it for the job."
        )
        check_completed(await gateway.buy_and_wait(), advice=advice)
        check_submits(server, 1, advice=advice)

    async def test_a_job_that_failed_is_submitted_anew(self, gateway: GatewayUnderTest) -> None:
        server = job_api_of(gateway, "failed")
        server.set_answers("accepted", jobs=("failed", "made"))
        advice = "`poll` raises JobFailed if the job itself failed."
        check_completed(await gateway.buy_and_wait(), advice=advice)
        check_submits(server, 2, advice=advice)

    async def test_a_job_that_is_lost_is_paid_back_or_begun_anew_where_that_is_free(
        self, gateway: GatewayUnderTest
    ) -> None:
        server = job_api_of(gateway, "lost")
        server.set_answers("accepted", jobs=("waiting lost", "made"))
        advice = "`poll` raises HandleLost if the API does not know its own job."
        if is_idempotent(gateway):
            check_completed(await gateway.buy_and_wait(), advice=advice)
            check_submits(server, 2, advice="An idempotent submit is simply sent again.")
            return
        check_failed(await gateway.buy_and_wait(), "uncertain_submit", advice=advice)
        check_submits(server, 1, advice=advice)

    async def test_a_job_that_takes_too_long_is_given_up(self, gateway: GatewayUnderTest) -> None:
        server = job_api_of(gateway)
        provider, traits = gateway.sold.upstream.provider, gateway.sold.upstream.traits
        task_id = await _begin_job(gateway, server)
        gateway.clock.ahead_s += gateway.sold.endpoint.timeout_s
        if isinstance(provider, Cancelling):
            async for _ in gateway.wait_for("a request that matches `cancel` of your FakeApi"):
                if server.cancelled:
                    break
        if isinstance(provider, Cancelling) and traits.resubmit_after_cancel:
            server.set_answers(jobs=("made",))
            advice = (
                "With `Traits(resubmit_after_cancel=True)` a job is submitted again once `cancel` "
                "returns: let `cancel` raise only if the vendor did not stop the job."
            )
            check_completed(await gateway.wait_for_end(task_id), advice=advice)
            check_submits(server, 2, advice="A job that was certainly stopped is submitted again.")
            return
        advice = "A job that may still be made and billed is not submitted again."
        check_failed(await gateway.wait_for_end(task_id), "timed_out", advice=advice)
        check_submits(server, 1, advice=advice)


async def _begin_job(gateway: GatewayUnderTest, server: FakeServer) -> str:
    """Buy, and return the task's id once its job has been polled."""
    server.set_answers("accepted", jobs=("waiting",))
    task_id = await gateway.buy()
    async for _ in gateway.wait_for("the provider to submit, and then to poll"):
        if len(server.polled) > 1:
            break
    return task_id
