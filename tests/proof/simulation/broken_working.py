"""Mutants of work on a paid task; each bills the operator twice."""

from typing import Any

from gateway import NotAccepted, SubmitUncertain
from gateway.store import tasks
from gateway.store.sql import as_write
from gateway.tasks import outcome
from gateway.tasks.outcome import Outcome
from tests.proof.simulation.mutant import Mutant


def unmarked_submit() -> Mutant:
    def begin_submit(db: Any, lease: Any, now: float) -> bool:
        return True

    return Mutant(
        "no mark before a submit", ((tasks.SqlQueue, "begin_submit", as_write(begin_submit)),)
    )


def forgotten_handle() -> Mutant:
    def save_handle(db: Any, lease: Any, handle: Any) -> bool:
        return tasks._change_leased(db, lease, "sent_at = NULL")

    return Mutant(
        "a handle is not written down", ((tasks.SqlQueue, "save_handle", as_write(save_handle)),)
    )


def uncertain_again() -> Mutant:
    record = Outcome.record

    async def kindly(self: Any, error: Exception, upstream: Any, job: Any) -> None:
        taken = NotAccepted() if isinstance(error, SubmitUncertain) else error
        await record(self, taken, upstream, job)

    return Mutant("an uncertain submit is sent again", ((Outcome, "record", kindly),))


def believed_exception() -> Mutant:
    def as_raised(error: Exception, traits: Any, job: Any) -> Exception:
        return error

    return Mutant(
        "what a plugin raises after its POST is tried again",
        ((outcome, "decisive_error", as_raised),),
    )
