"""The provider: queues a workflow under an id of ours, and finds it again by that id."""

import asyncio
import contextlib
import statistics
import time
import uuid
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from gateway import (
    AccountProblem,
    Answer,
    Endpoint,
    ExecutionError,
    GenerationRequest,
    Handle,
    HandleLost,
    InvalidInput,
    Job,
    JobFailed,
    Output,
    Pending,
    Result,
    SubmitUncertain,
    Traits,
    Transient,
)
from gateway.errors import ProviderError
from gateway.vendors import as_object, as_text
from gateway_comfyui.answers import (
    failure_of,
    files_of,
    is_out_of_memory,
    media_type_of,
    refusal_of,
    seconds_of,
)
from gateway_comfyui.fleet import Fleet, Report, mildest, unfit_error
from gateway_comfyui.folder import read_folder
from gateway_comfyui.machine import CLIENT, JobState, Machine, check
from gateway_comfyui.metadata import holds_graph, without_text
from gateway_comfyui.workflows import NAME, Workflow

# Of the ids of jobs.
_SPACE = uuid.UUID("b8c3d2e6-6f0c-4f2a-9a35-5d1c4ee0a7b1")
_POLL_S = 1.0
# A machine that answered so recently is not asked again before a payment.
_FRESH_S = 2.0
# How long the findings about nodes, models and options hold.
_INSPECTED_S = 60.0
# With several machines, a job begins again on another one after this silence.
_SILENT_S = 30.0
_MAX_FILES = 16
_MAX_BYTES = 128_000_000
# Past runs from which progress is estimated.
_RUNS = 20
_MOST_PROGRESS = 0.95
# Jobs that are remembered after their files were fetched.
_FETCHED = 1_000
_OK = 200
# A 500 is ComfyUI's own; a proxy sends the others while ComfyUI is down.
_CRASHED = 500
_AWAY = "The machine that makes this does not answer. Try again later."
_OFF = "The operator's machine cannot make this now."


@attrs.define
class ComfyUI:
    """Runs the workflows of a folder on the operator's machines.

    Two with equal workflows are equal: a reload then keeps the first one.
    """

    fleet: Fleet = attrs.field(eq=False, repr=False)
    folder: Path | None = None
    traits: Traits = attrs.field(factory=Traits, kw_only=True)
    name: str = NAME
    workflows: dict[str, Workflow] = attrs.field(factory=dict, repr=False)
    report: Report = attrs.field(factory=Report, init=False, eq=False, repr=False)
    _inspected_at: float = attrs.field(default=float("-inf"), init=False, eq=False)
    _asked_at: float = attrs.field(default=float("-inf"), init=False, eq=False)
    _answers: bool = attrs.field(default=False, init=False, eq=False)
    _asking: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False, eq=False, repr=False)
    _choosing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False, eq=False, repr=False)
    # Seconds of recent runs by slug, and when a running job was first seen, by its id.
    _runs: dict[str, deque[float]] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    _running: dict[str, float] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    # When the machine of a job first did not answer, by the job's id.
    _silent: dict[str, float] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    # Jobs whose files were fetched. If the gateway refused those, another try makes new ones.
    _fetched: deque[str] = attrs.field(
        factory=lambda: deque(maxlen=_FETCHED), init=False, eq=False, repr=False
    )

    def read_folder(self) -> list[Endpoint]:
        """Read the folder, and return the endpoints of its workflows.

        May be called again: begun jobs need nothing of a workflow that was removed. Raises
        `SettingsError` for a mistake, and then changes nothing.
        """
        if self.folder is None:
            return []
        found = read_folder(self.folder)
        endpoints = [one.endpoint() for one in found]
        self.workflows = {one.slug: one for one in found}
        self._inspected_at = float("-inf")
        return endpoints

    @property
    def notes(self) -> tuple[str, ...]:
        """Machines and unsold workflows for the operator, as they were last found."""
        return (
            *map(str, self.report.machines),
            *(f"{slug} is not sold: {fault}" for slug, fault in self.report.faults.items()),
        )

    async def health(self) -> None:
        """Inspect every machine; one that works is enough."""
        self.report = await self.fleet.inspect(self.workflows.values())
        self._inspected_at = time.monotonic()
        error = unfit_error(self.report)
        self._answers, self._asked_at = error is None, self._inspected_at
        if error is not None:
            raise error

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse what would fail, before the payment: words, a broken workflow, a dead machine.

        All requests share one question to the machines per two seconds.
        """
        workflow = self._workflow(endpoint.slug)
        workflow.check(request)
        async with self._asking:
            await self._ask_machines()
        if not self._answers:
            raise ExecutionError(_AWAY)
        if workflow.slug in self.report.faults:
            raise ExecutionError(_OFF)

    async def _ask_machines(self) -> None:
        """Note whether a machine works, unless that is known."""
        now = time.monotonic()
        if now - self._asked_at < _FRESH_S:
            return
        try:
            is_known = unfit_error(self.report) is None
            if not is_known or now - self._inspected_at > _INSPECTED_S:
                await self.health()
            else:
                await self.fleet.pick()
            self._answers = True
        except ProviderError:
            self._answers = False
        self._asked_at = time.monotonic()

    def _workflow(self, slug: str) -> Workflow:
        if slug not in self.workflows:
            raise ExecutionError("This workflow is no longer sold.")
        return self.workflows[slug]

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Queue the workflow, unless an earlier try has queued it and its job still exists."""
        workflow = self.workflows.get(job.endpoint.slug)
        if workflow is None:
            raise AccountProblem("The workflow was removed from the folder.", scope="model")
        begun, unsure = await self._find_begun(workflow, job)
        if begun is not None:
            return begun
        if len(unsure) == len(self.fleet.machines):
            raise mildest(unsure.values())
        # One at a time: the next choice of a machine counts this job.
        async with self._choosing:
            machine = await self.fleet.pick(without=unsure)
            try:
                return await self._begin(request, job, workflow, machine)
            except AccountProblem as error:
                if error.scope != "vendor" or len(self.fleet.machines) == 1:
                    raise
                # One machine that refuses does not take the others off sale.
                self.fleet.rest(machine)
                raise Transient(f"The machine does not work: {error}") from None

    async def _begin(
        self, request: GenerationRequest, job: Job, workflow: Workflow, machine: Machine
    ) -> Handle:
        """Queue the workflow on a machine."""
        prompt_id = _prompt_id(job, job.attempt)
        picture = ""
        if "picture" in workflow.inputs:
            if request.attachment is None:
                raise InvalidInput("A picture is missing.")
            picture = await machine.upload(request.attachment, prompt_id)
        order = {
            "prompt": workflow.filled(request, prompt_id, picture),
            "prompt_id": prompt_id,
            "client_id": CLIENT,
        }
        try:
            answer = await machine.submit(order)
            await _check_submit(machine, answer, prompt_id, workflow)
        except SubmitUncertain as doubt:
            if not await _is_queued(machine, prompt_id):
                raise doubt from None
        return _handle(machine, prompt_id, workflow)

    async def _find_begun(
        self, workflow: Workflow, job: Job
    ) -> tuple[Handle | None, dict[str, ProviderError]]:
        """Return the job of a try that ended before its handle was stored.

        A failed job counts for its own attempt only, whose poll reports the failure. The second
        value has the errors of the machines that may hold the job, by their names.
        """
        unsure: dict[str, ProviderError] = {}
        for attempt in range(job.attempt, 0, -1):
            prompt_id = _prompt_id(job, attempt)
            is_own = attempt == job.attempt
            if prompt_id in self._fetched and not is_own:
                continue
            for machine in self.fleet.machines:
                try:
                    found = await machine.find(prompt_id)
                except ProviderError as error:
                    unsure[machine.name] = error
                    self.fleet.rest(machine)
                    continue
                is_failed = found.state == "ended" and not found.has_succeeded
                if found.state != "unknown" and (is_own or not is_failed):
                    return _handle(machine, prompt_id, workflow), unsure
        return None, unsure

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:
        """Find the job; one in neither the queue nor the history is lost."""
        machine = self.fleet.named(handle.facts.get("machine", ""))
        if machine is None:
            raise HandleLost("GATEWAY_COMFYUI_URLS no longer names the machine of this job.")
        found = await self._find_patiently(machine, handle.id)
        slug = job.endpoint.slug
        match found.state:
            case "unknown":
                self._running.pop(handle.id, None)
                raise HandleLost("ComfyUI lost the job: it was restarted, or its queue emptied.")
            case "waiting":
                return Pending(progress=0.0, note="in ComfyUI's queue", poll_after_s=_POLL_S)
            case "running":
                return Pending(progress=self._progress(handle.id, slug), poll_after_s=_POLL_S)
        self._running.pop(handle.id, None)
        if not found.has_succeeded:
            if is_out_of_memory(found.status):
                with contextlib.suppress(ProviderError):
                    await machine.free()
            raise failure_of(found.status)
        result = await self._fetch(machine, handle, found)
        if (seconds := seconds_of(found.status)) is not None:
            self._runs.setdefault(slug, deque(maxlen=_RUNS)).append(seconds)
        return result

    async def _fetch(self, machine: Machine, handle: Handle, found: JobState) -> Result:
        """Return the files. If they cannot be sold, another try makes new ones."""
        try:
            result = await fetch_files(machine, found, handle.facts.get("output", ""))
        except JobFailed:
            self._fetched.append(handle.id)
            raise
        self._fetched.append(handle.id)
        return result

    async def _find_patiently(self, machine: Machine, prompt_id: str) -> JobState:
        """Find a job; raises `HandleLost` once another machine should and can make it."""
        try:
            found = await machine.find(prompt_id)
        except (Transient, AccountProblem) as error:
            if len(self.fleet.machines) == 1:
                raise
            since = self._silent.setdefault(prompt_id, time.monotonic())
            if time.monotonic() - since > _SILENT_S and await self._has_other(machine):
                self._silent.pop(prompt_id, None)
                raise HandleLost("Its machine does not answer; another one begins again.") from None
            raise Transient(f"The machine of the job does not work: {error}") from None
        self._silent.pop(prompt_id, None)
        return found

    async def _has_other(self, machine: Machine) -> bool:
        """Whether another machine answers."""
        try:
            await self.fleet.pick(without={machine.name})
        except ProviderError:
            return False
        return True

    def _progress(self, prompt_id: str, slug: str) -> float | None:
        """Return the elapsed part of the median run; None before the first run."""
        now = time.monotonic()
        elapsed_s = now - self._running.setdefault(prompt_id, now)
        runs = self._runs.get(slug)
        if not runs:
            return None
        return min(elapsed_s / max(statistics.median(runs), 0.001), _MOST_PROGRESS)

    async def cancel(self, handle: Handle) -> None:
        """Stop a job that took too long."""
        for known in (self._running, self._silent):
            known.pop(handle.id, None)
        machine = self.fleet.named(handle.facts.get("machine", ""))
        if machine is not None:
            await machine.stop(handle.id)

    async def close(self) -> None:
        """Close all connections."""
        await self.fleet.close()


def _prompt_id(job: Job, attempt: int) -> str:
    """Return the id of an attempt: ComfyUI takes lower-case UUIDs only."""
    return str(uuid.uuid5(_SPACE, f"{job.task_id}/{attempt}"))


def _handle(machine: Machine, prompt_id: str, workflow: Workflow) -> Handle:
    return Handle(id=prompt_id, facts={"machine": machine.name, "output": workflow.output})


async def _check_submit(
    machine: Machine, answer: Answer, prompt_id: str, workflow: Workflow
) -> None:
    """Raise the error that the answer to a submit means."""
    body: Mapping[str, Any] = as_object(await answer.submit_json())
    refusal = refusal_of(body, workflow)
    if answer.status == _OK:
        taken = as_text(body.get("prompt_id"))
        if taken and taken != prompt_id:
            await machine.stop(taken)
            raise AccountProblem("ComfyUI is too old: it ignores the id of a job. Update it.")
        if refusal is not None:
            # Other outputs of the workflow would still be made.
            await machine.stop(prompt_id)
            raise refusal
        if not taken:
            raise SubmitUncertain("ComfyUI's answer has no id of a job.")
        return
    if refusal is not None:
        raise refusal
    if answer.status == _CRASHED and not await _is_queued(machine, prompt_id):
        raise JobFailed("ComfyUI failed to read the workflow, and queued nothing.")
    check(answer)


async def _is_queued(machine: Machine, prompt_id: str) -> bool:
    """Whether a job exists after an answer that leaves it open."""
    try:
        return (await machine.find(prompt_id)).state != "unknown"
    except Transient:
        return False


async def fetch_files(machine: Machine, found: JobState, output: str) -> Result:
    """Return the files of the sold node, without the graph."""
    files = files_of(found.entry, output)
    if not files:
        raise JobFailed(f"The workflow ended without a file of node {output}.")
    outputs: list[Output] = []
    for file in files[:_MAX_FILES]:
        data = without_text(await machine.download(file))
        if await asyncio.to_thread(holds_graph, data):
            raise JobFailed(
                f"A file of node {output} holds the workflow: start ComfyUI with "
                "--disable-metadata, or use another save node."
            )
        outputs.append(Output(data=data, media_type=media_type_of(file)))
        if sum(len(one.data) for one in outputs) > _MAX_BYTES:
            raise JobFailed(f"The files of node {output} have more than 128 MB.")
    return Result(outputs=tuple(outputs))
