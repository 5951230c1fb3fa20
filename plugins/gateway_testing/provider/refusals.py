"""Scenes of the provider contract: the API refuses a request."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from gateway.catalog.health import error_of, probe_forever, problem_of
from gateway.contracts import Probing
from gateway.domain import MAX_ATTEMPTS
from gateway.errors import AccountProblem
from gateway_testing.fakes.api import FakeApi
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

_PROBED_AFTER_S = 3600.0
_RETRY_ADVICE = (
    '`submit` raises NotAccepted if the vendor documents that an answer means "not taken", and '
    "Transient only if the request did not go out."
)


class RefusalScenes:
    """Each kind of refusal, and its effect for the buyer and the operator."""

    async def test_too_many_requests_are_waited_for(self, gateway: GatewayUnderTest) -> None:
        server = api_of(gateway, "limited")
        server.set_answers("limited", accepting_answer(gateway), jobs=("made",))
        began = gateway.clock()
        task = await gateway.buy_and_wait()
        advice = "`submit` raises RateLimited(…, retry_after_s=…); `Answer.check` does for a 429."
        check_completed(task, advice=advice)
        check_submits(server, 2, advice=advice)
        assert task.attempt == 1, f"Waiting cost an attempt. {advice}"
        asked_s = float(server.retry_after or 0)
        assert gateway.clock() - began >= asked_s, f"The API's Retry-After was ignored. {advice}"

    async def test_a_moments_trouble_is_tried_again_where_that_bills_nothing(
        self, gateway: GatewayUnderTest
    ) -> None:
        server, trouble = _retryable_answer(gateway)
        server.set_answers(trouble, accepting_answer(gateway), jobs=("made",))
        check_completed(await gateway.buy_and_wait(), advice=_RETRY_ADVICE)
        check_submits(server, 2, advice=_RETRY_ADVICE)

    async def test_lasting_trouble_is_paid_back(self, gateway: GatewayUnderTest) -> None:
        server, trouble = _retryable_answer(gateway)
        server.set_answers(trouble)
        check_failed(await gateway.buy_and_wait(), "provider_error", advice=_RETRY_ADVICE)
        check_submits(server, MAX_ATTEMPTS, advice=f"{_RETRY_ADVICE} The gateway counts to four.")

    async def test_refused_content_is_not_asked_for_again(self, gateway: GatewayUnderTest) -> None:
        server = api_of(gateway, "moderated")
        server.set_answers(*_answers_ending_in(gateway, "moderated"), jobs=("waiting moderated",))
        advice = "Raise ContentPolicy if the API refuses the content."
        check_failed(await gateway.buy_and_wait(), "content_policy", advice=advice)
        check_submits(server, 1, advice=advice)
        assert gateway.is_on_sale, "One buyer's content took the endpoint off sale for all."

    async def test_success_without_a_result_is_not_asked_for_again(
        self, gateway: GatewayUnderTest
    ) -> None:
        server = api_of(gateway, "nothing")
        server.set_answers(*_answers_ending_in(gateway, "nothing"), jobs=("waiting nothing",))
        is_document = not gateway.sold.endpoint.sells_pictures
        reasons: tuple[str, ...] = ("content_policy",)
        advice = "Raise ContentPolicy for an answer without a picture: a filter removed it."
        if is_document:
            reasons = ("provider_error", "uncertain_submit", "invalid_input")
            advice = "Raise ResultMissing for an answer without a text, or InvalidInput."
        check_failed(await gateway.buy_and_wait(), *reasons, advice=advice)
        check_submits(server, 1, advice=advice)

    async def test_a_refused_key_takes_the_endpoint_off_sale(
        self, gateway: GatewayUnderTest, secrets: tuple[str, ...]
    ) -> None:
        server = api_of(gateway, "account")
        server.set_answers("account", others="account")
        advice = "Raise AccountProblem if the operator must act; `Answer.check` does for a 401."
        check_failed(await gateway.buy_and_wait(), "provider_error", advice=advice)
        assert len(server.submitted) <= 1, f"It was asked again with a refused key. {advice}"
        assert not gateway.is_on_sale, f"The next buyer would pay for nothing. {advice}"
        problem = gateway.sold.upstream.circuit.problem or ""
        private = [*secrets, gateway.fields.get("prompt") or "no prompt"]
        assert not any(text in problem for text in private), (
            f"The operator's log gets {problem!r}: it must contain neither key nor prompt."
        )
        server.set_answers(accepting_answer(gateway), jobs=("made",), others="other")
        gateway.clock.ahead_s += _PROBED_AFTER_S
        async with _run_probes(gateway):
            async for _ in gateway.wait_for(
                "the endpoint to be on sale again: does `health` pass?"
            ):
                if gateway.is_on_sale:
                    break
        advice = "The key works again: keep nothing about the refusal in the provider."
        check_completed(await gateway.buy_and_wait(), advice=advice)

    async def test_a_wrong_key_is_found_before_anybody_pays(
        self, gateway: GatewayUnderTest, secrets: tuple[str, ...]
    ) -> None:
        server = api_of(gateway, "account")
        if not isinstance(gateway.sold.upstream.provider, Probing):
            pytest.skip("the provider has no `health`")
        server.set_answers(others="account")
        error = await error_of(gateway.sold.upstream)
        raised = "nothing" if error is None else type(error).__name__
        assert isinstance(error, AccountProblem), (
            f"`health` raises {raised} for a refused key; AccountProblem would take the endpoint "
            "off sale before anybody pays."
        )
        problem = await problem_of(gateway.sold.upstream) or ""
        assert not any(secret in problem for secret in secrets), (
            "`health` reveals the key to the operator's log and to `gateway plugins`."
        )
        async with _run_probes(gateway):
            async for _ in gateway.wait_for("the endpoint to be off sale"):
                if not gateway.is_on_sale:
                    break
        check_submits(server, 0, advice="`health` must cost nothing: it submitted.")

    async def test_health_costs_nothing_and_tells_a_moments_trouble(
        self, gateway: GatewayUnderTest
    ) -> None:
        if not isinstance(gateway.sold.upstream.provider, Probing):
            pytest.skip("the provider has no `health`")
        problem = await problem_of(gateway.sold.upstream)
        assert problem is None, (
            f"`health` reports {problem} for an API that works. Is the path that it requests in "
            "`others` of your FakeApi?"
        )
        server = api_of(gateway, "broken")
        server.set_answers(others="broken")
        problem = await problem_of(gateway.sold.upstream)
        assert problem is not None, "`health` reports no problem for an API that is down."
        assert "AccountProblem" not in problem, f"`health` blames the operator: {problem}"
        check_submits(server, 0, advice="`health` must cost nothing: it submitted.")


def _retryable_answer(gateway: GatewayUnderTest) -> tuple[FakeServer, str]:
    """Return the API and the name of a response after which a submit is sent again."""
    if is_idempotent(gateway):
        return api_of(gateway, "broken"), "broken"
    server = api_of(gateway, "busy")
    if type(server.api).busy is FakeApi.busy:
        pytest.skip('the API has no answer that clearly means "not taken" (`busy`)')
    return server, "busy"


def _answers_ending_in(gateway: GatewayUnderTest, answer: str) -> tuple[str, ...]:
    """Return the responses to a submit whose result is `answer`."""
    return ("accepted",) if accepting_answer(gateway) == "accepted" else (answer,)


@contextlib.asynccontextmanager
async def _run_probes(gateway: GatewayUnderTest) -> AsyncIterator[None]:
    """Run the health probes inside the block, as a running gateway does."""
    probing = asyncio.create_task(probe_forever(gateway.catalog), name="kit-probing")
    try:
        yield
    finally:
        probing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await probing
