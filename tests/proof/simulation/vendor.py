"""The simulated vendor of generations: bills, forgets, fails, and detects double billing."""

from typing import Any

import attrs

from gateway import (
    ContentPolicy,
    Endpoint,
    GenerationRequest,
    Handle,
    HandleLost,
    InvalidInput,
    Job,
    JobFailed,
    Pending,
    RateLimited,
    Result,
    SubmitUncertain,
    Traits,
    Transient,
)
from gateway.catalog.notes import note_billable
from tests.proof.simulation.loop import OWNER

DONE = Result(text="done")


@attrs.define
class Vendor:
    """The vendor's data, which survives every process of the gateway."""

    billed: dict[str, str] = attrs.field(factory=dict)  # job to task, unless it said it failed
    _jobs: int = 0

    def bill(self, task_id: str, life: Any) -> str:
        """Accept a submit; a second one for a task is a violation."""
        if task_id in self.billed.values():
            life.ground.surprises.append(f"BILLED_TWICE task {task_id}")
        self._jobs += 1
        self.billed[f"job-{self._jobs}"] = task_id
        return f"job-{self._jobs}"

    def fail(self, job_id: str) -> None:
        """Fail a job, which is then not billed."""
        self.billed.pop(job_id, None)


class DiceProvider:
    """Generates, at once or as a job, or fails in any way that a provider may, by chance."""

    name = "dice"
    traits = Traits(max_concurrency=3)

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse nothing."""

    async def submit(self, request: GenerationRequest, job: Job) -> Result | Handle:
        life: Any = OWNER.get()
        world = life.world
        await life.pause()
        chance = 0.0 if world.is_healed else world.dice.random()
        world.note(f"provider works on {job.task_id[:8]}, attempt {job.attempt}: {chance:.2f}")
        life.check_paid(job.task_id)
        if chance > 0.8:
            raise _refusal(chance)
        job_id = life.ground.vendor.bill(job.task_id, life)
        await life.crash_point("submitted, its answer not seen")
        await life.pause()
        if chance > 0.72:
            raise _late(chance)
        return DONE if chance < 0.35 else Handle(id=job_id)

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:
        life: Any = OWNER.get()
        world = life.world
        await life.crash_point("about to poll")
        await life.pause()
        chance = 1.0 if world.is_healed else world.dice.random()
        if chance < 0.4:
            return Pending(progress=chance)
        if chance < 0.6:
            raise Transient("busy") if chance < 0.57 else ValueError("odd")
        if chance < 0.64:
            life.ground.vendor.fail(handle.id)
            raise JobFailed("it broke")
        if chance < 0.66:
            raise HandleLost("who?")
        if chance < 0.68:
            raise ContentPolicy("never")
        return DONE


def _late(chance: float) -> Exception:
    """Return the error after an accepted submit: no response, an odd one, a plugin's bug."""
    if chance > 0.76:
        return SubmitUncertain("no answer")
    if chance > 0.74:
        return KeyError("id")
    note_billable()  # as `Outbound` does
    return Transient("status 502")


def _refusal(chance: float) -> Exception:
    """Return the reason for refusing a submit."""
    if chance < 0.88:
        return Transient("busy")
    if chance < 0.91:
        return RateLimited("wait", retry_after_s=2.0)
    return InvalidInput("no") if chance < 0.96 else ContentPolicy("never")
