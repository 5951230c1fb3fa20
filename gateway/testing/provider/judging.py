"""What the scenes of the provider contract have in common: skips that say why, and verdicts."""

import pytest

from gateway.contracts import Polling
from gateway.domain import PaymentState, Task, TaskStatus
from gateway.testing.fakes.server import FakeServer
from gateway.testing.provider.stage import Stage

_SEEN_SHOWN = 12  # requests, in a message


def api_of(stage: Stage, *answers: str) -> FakeServer:
    """Return the fake API; leaves the scene out where there is none, or it has no such answer."""
    server = stage.server
    if server is None:
        pytest.skip("the provider asks no API (`api = None`)")
    for answer in answers:
        if answer in server.api.lacks:
            pytest.skip(f"the API has no such answer (`lacks` names {answer!r})")
    return server


def job_api_of(stage: Stage, *answers: str) -> FakeServer:
    """Return the fake API of a provider of jobs; leaves the scene out for any other."""
    server = api_of(stage, *answers)
    if not isinstance(stage.sold.upstream.provider, Polling):
        pytest.skip("the provider has no `poll`: its API answers with the result")
    return server


def good(stage: Stage) -> str:
    """Return what a submit that is taken is answered with."""
    return "accepted" if isinstance(stage.sold.upstream.provider, Polling) else "made"


def is_idempotent(stage: Stage) -> bool:
    """Whether the provider says that a submit may be sent again without harm."""
    return stage.sold.upstream.traits.idempotent_submit


def told(task: Task) -> str:
    """Return in words how a task ended."""
    return f"The task is {task.status.value} after {task.attempt} attempts ({task.details})."


def check_completed(task: Task, *, advice: str = "") -> None:
    """Fail unless the buyer has got something."""
    assert task.status is TaskStatus.COMPLETED, (
        f"The buyer got nothing. {told(task)} {advice} The log below tells what your `submit` or "
        "`poll` raised."
    )


def check_failed(task: Task, *details: str, advice: str) -> None:
    """Fail unless the task failed for one of these reasons, and the money is owed back."""
    assert task.status is TaskStatus.FAILED, f"{told(task)} It should have failed. {advice}"
    assert task.details in details, f"{told(task)} Expected: {' or '.join(details)}. {advice}"
    assert task.payment.state is PaymentState.REFUND_DUE, "The buyer's money is not owed back."


def check_submits(server: FakeServer, expected: int, *, advice: str) -> None:
    """Fail unless the API saw so many submits."""
    count = len(server.submitted)
    seen = ", ".join(server.seen[-_SEEN_SHOWN:]) or "nothing"
    assert count == expected, (
        f"The API saw {count} requests that match {server.api.submit!r}, expected {expected}. "
        f"{advice} It saw: {seen}."
    )
