"""Checks shared by the scenes of the provider contract, and reasons to skip a scene."""

import pytest

from gateway.contracts import Polling
from gateway.domain import PaymentState, Task, TaskStatus
from gateway_testing.fakes.server import FakeServer
from gateway_testing.provider.gateway_under_test import GatewayUnderTest

# Requests listed in a message.
_SEEN_SHOWN = 12


def api_of(gateway: GatewayUnderTest, *answers: str) -> FakeServer:
    """Return the fake API; skip the scene if there is none or it lacks a response."""
    server = gateway.server
    if server is None:
        pytest.skip("the provider asks no API (`api = None`)")
    for answer in answers:
        if answer in server.api.lacks:
            pytest.skip(f"the API has no such answer (`lacks` names {answer!r})")
    return server


def job_api_of(gateway: GatewayUnderTest, *answers: str) -> FakeServer:
    """Return the fake API of a provider with jobs; skip the scene for other providers."""
    server = api_of(gateway, *answers)
    if not isinstance(gateway.sold.upstream.provider, Polling):
        pytest.skip("the provider has no `poll`: its API answers with the result")
    return server


def accepting_answer(gateway: GatewayUnderTest) -> str:
    """Return the name of the response to a submit that the vendor accepts."""
    return "accepted" if isinstance(gateway.sold.upstream.provider, Polling) else "made"


def is_idempotent(gateway: GatewayUnderTest) -> bool:
    """Whether the provider declares that repeating a submit is harmless."""
    return gateway.sold.upstream.traits.idempotent_submit


def describe_task(task: Task) -> str:
    """Return a sentence on how a task ended."""
    return f"The task is {task.status.value} after {task.attempt} attempts ({task.details})."


def check_completed(task: Task, *, advice: str = "") -> None:
    """Fail unless the buyer got a result."""
    assert task.status is TaskStatus.COMPLETED, (
        f"The buyer got nothing. {describe_task(task)} {advice} The log below shows what your "
        "`submit` or `poll` raised."
    )


def check_failed(task: Task, *details: str, advice: str) -> None:
    """Fail unless the task failed for one of these reasons and a refund is due."""
    assert task.status is TaskStatus.FAILED, (
        f"{describe_task(task)} It should have failed. {advice}"
    )
    assert task.details in details, (
        f"{describe_task(task)} Expected: {' or '.join(details)}. {advice}"
    )
    assert task.payment.state is PaymentState.REFUND_DUE, "No refund is due to the buyer."


def check_submits(server: FakeServer, expected: int, *, advice: str) -> None:
    """Fail unless the API got exactly this many submits."""
    count = len(server.submitted)
    seen = ", ".join(server.seen[-_SEEN_SHOWN:]) or "nothing"
    assert count == expected, (
        f"The API saw {count} requests that match {server.api.submit!r}, expected {expected}. "
        f"{advice} It saw: {seen}."
    )
