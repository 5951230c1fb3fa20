"""Scenes of the provider contract: an API that says no, and why."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from gateway.contracts import Probing
from gateway.domain import DOCUMENT_PARSING, MAX_ATTEMPTS
from gateway.plugins.health import probe_forever, problem_of
from gateway.testing.fakes.api import FakeApi
from gateway.testing.fakes.server import FakeServer
from gateway.testing.provider.judging import (
    api_of,
    check_completed,
    check_failed,
    check_submits,
    good,
    is_idempotent,
)
from gateway.testing.provider.stage import Stage

_PROBED_AFTER_S = 3600.0
_TROUBLE = (
    '`submit` raises NotAccepted where the vendor documents that an answer means "not taken", and '
    "Transient only where nothing went out."
)


class RefusingScenes:
    """Each kind of no, and what it means for buyer and operator."""

    async def test_too_many_requests_are_waited_for(self, stage: Stage) -> None:
        server = api_of(stage, "limited")
        server.plays("limited", good(stage), jobs=("made",))
        began = stage.clock()
        task = await stage.bought()
        advice = "`submit` raises RateLimited(…, retry_after_s=…); `Answer.check` does for a 429."
        check_completed(task, advice=advice)
        check_submits(server, 2, advice=advice)
        assert task.attempt == 1, f"Waiting cost an attempt. {advice}"
        asked_s = float(server.retry_after or 0)
        assert stage.clock() - began >= asked_s, f"The API's Retry-After was not heard. {advice}"

    async def test_a_moments_trouble_is_tried_again_where_that_bills_nothing(
        self, stage: Stage
    ) -> None:
        server, trouble = _trouble_of(stage)
        server.plays(trouble, good(stage), jobs=("made",))
        check_completed(await stage.bought(), advice=_TROUBLE)
        check_submits(server, 2, advice=_TROUBLE)

    async def test_lasting_trouble_is_paid_back(self, stage: Stage) -> None:
        server, trouble = _trouble_of(stage)
        server.plays(trouble)
        check_failed(await stage.bought(), "provider_error", advice=_TROUBLE)
        check_submits(server, MAX_ATTEMPTS, advice=f"{_TROUBLE} The gateway counts to four.")

    async def test_refused_content_is_not_asked_for_again(self, stage: Stage) -> None:
        server = api_of(stage, "moderated")
        server.plays(*_ends_as(stage, "moderated"), jobs=("waiting moderated",))
        advice = "Raise ContentPolicy where the API refuses the content."
        check_failed(await stage.bought(), "content_policy", advice=advice)
        check_submits(server, 1, advice=advice)
        assert stage.is_on_sale, "One buyer's content took the endpoint off sale for all."

    async def test_success_without_a_result_is_not_asked_for_again(self, stage: Stage) -> None:
        server = api_of(stage, "nothing")
        server.plays(*_ends_as(stage, "nothing"), jobs=("waiting nothing",))
        is_document = stage.sold.endpoint.capability == DOCUMENT_PARSING
        reasons = ("uncertain_submit", "invalid_input") if is_document else ("content_policy",)
        advice = "Raise ContentPolicy for an answer without a picture: a filter took it."
        if is_document:
            advice = "Raise SubmitUncertain, HandleLost or InvalidInput for one without a text."
        check_failed(await stage.bought(), *reasons, advice=advice)
        check_submits(server, 1, advice=advice)

    async def test_a_refused_key_takes_the_endpoint_off_sale(
        self, stage: Stage, secrets: tuple[str, ...]
    ) -> None:
        server = api_of(stage, "account")
        server.plays("account", others="account")
        advice = "Raise AccountProblem where the operator must act; `Answer.check` does for a 401."
        check_failed(await stage.bought(), "provider_error", advice=advice)
        assert len(server.submitted) <= 1, f"It was asked again with a refused key. {advice}"
        assert not stage.is_on_sale, f"The next buyer would pay for nothing. {advice}"
        problem = stage.sold.upstream.circuit.problem or ""
        told = [*secrets, stage.fields.get("prompt") or "no prompt"]
        assert not any(text in problem for text in told), (
            f"The operator's log gets {problem!r}: say neither key nor prompt."
        )
        server.plays(good(stage), jobs=("made",), others="other")
        stage.clock.ahead_s += _PROBED_AFTER_S
        async with _probing(stage):
            async for _ in stage.looks("the endpoint to be on sale again: does `health` pass?"):
                if stage.is_on_sale:
                    break
        check_completed(await stage.bought())

    async def test_a_wrong_key_is_found_before_anybody_pays(
        self, stage: Stage, secrets: tuple[str, ...]
    ) -> None:
        server = api_of(stage, "account")
        if not isinstance(stage.sold.upstream.provider, Probing):
            pytest.skip("the provider has no `health`")
        server.plays(others="account")
        problem = await problem_of(stage.sold.upstream) or "nothing"
        assert problem.startswith("AccountProblem"), (
            f"`health` raises {problem} for a refused key; AccountProblem would take the endpoint "
            "off sale before anybody pays."
        )
        assert not any(secret in problem for secret in secrets), (
            "`health` says the key, and the operator's log and `gateway plugins` show what it says."
        )
        async with _probing(stage):
            async for _ in stage.looks("the endpoint to be off sale"):
                if not stage.is_on_sale:
                    break
        check_submits(server, 0, advice="`health` must cost nothing: it submitted.")

    async def test_health_costs_nothing_and_tells_a_moments_trouble(self, stage: Stage) -> None:
        if not isinstance(stage.sold.upstream.provider, Probing):
            pytest.skip("the provider has no `health`")
        problem = await problem_of(stage.sold.upstream)
        assert problem is None, f"`health` says {problem} of an API that works."
        server = api_of(stage, "broken")
        server.plays(others="broken")
        problem = await problem_of(stage.sold.upstream)
        assert problem is not None, "`health` says nothing about an API that is down."
        assert "AccountProblem" not in problem, f"`health` blames the operator: {problem}"
        check_submits(server, 0, advice="`health` must cost nothing: it submitted.")


def _trouble_of(stage: Stage) -> tuple[FakeServer, str]:
    """Return the API, and an answer of it after which a submit is sent again."""
    if is_idempotent(stage):
        return api_of(stage, "broken"), "broken"
    server = api_of(stage, "busy")
    if type(server.api).busy is FakeApi.busy:
        pytest.skip('the API has no answer that clearly means "not taken" (`busy`)')
    return server, "busy"


def _ends_as(stage: Stage, answer: str) -> tuple[str, ...]:
    """Return what a submit is answered with where its result is to be `answer`."""
    return ("accepted",) if good(stage) == "accepted" else (answer,)


@contextlib.asynccontextmanager
async def _probing(stage: Stage) -> AsyncIterator[None]:
    """Ask providers how they are, as a running gateway does."""
    probing = asyncio.create_task(probe_forever(stage.catalog), name="kit-probing")
    try:
        yield
    finally:
        probing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await probing
