"""All machines of the operator: their problems, and the choice of one for the next job."""

import asyncio
import re
import time
from collections.abc import Collection, Mapping, Sequence

import attrs

from gateway import AccountProblem, Transient
from gateway.errors import ProviderError
from gateway_comfyui.checking import kinds_of, metadata_problem, problems_in
from gateway_comfyui.machine import About, Machine
from gateway_comfyui.workflows import Workflow

# The first version that interrupts one job only. Compared as numbers: 0.33 is newer than 0.3.64.
_OLDEST = (0, 3, 58)
_WITHOUT_METADATA = "--disable-metadata"
_SILENT = "it does not answer"
# Buyers wait for each machine that is asked, so a silent one rests.
_REST_S = 15.0


@attrs.frozen(kw_only=True)
class MachineReport:
    """One machine as it was found."""

    name: str
    version: str = ""
    # Jobs that run and wait, the operator's own included.
    queue: int = 0
    # Why no job is sent there; empty if it works.
    problem: str = ""
    # Why a workflow cannot be sold there, by its slug.
    faults: Mapping[str, str] = attrs.field(factory=dict)
    error: ProviderError | None = attrs.field(default=None, repr=False)

    def __str__(self) -> str:
        if self.problem:
            return f"{self.name}: {self.problem}"
        jobs = "1 job" if self.queue == 1 else f"{self.queue} jobs"
        return f"{self.name}: ComfyUI {self.version}, {jobs} in its queue"


@attrs.frozen
class Report:
    """All machines as they were found."""

    machines: tuple[MachineReport, ...] = ()

    @property
    def faults(self) -> dict[str, str]:
        """Why a workflow is not sold, by its slug: each machine must be able to run it."""
        working = [one for one in self.machines if not one.problem]
        several = len(self.machines) > 1
        return {
            slug: f"{one.name}: {fault}" if several else fault
            for one in reversed(working)
            for slug, fault in one.faults.items()
        }


@attrs.define
class Fleet:
    """The machines, which all have the same nodes and models."""

    machines: Sequence[Machine]
    # Machines that are too old.
    _unfit: set[str] = attrs.field(factory=set, init=False)
    # Until when a machine that did not answer, or refused, is left out, by its name.
    _silent_until: dict[str, float] = attrs.field(factory=dict, init=False)

    def named(self, name: str) -> Machine | None:
        """Return a machine by its name; None if the operator has removed it."""
        return next((one for one in self.machines if one.name == name), None)

    async def pick(self, without: Collection[str] = ()) -> Machine:
        """Return the machine with the fewest jobs that is not named in `without`.

        Raises an error if none answers.
        """
        asked = self._askable(without)
        lengths = await asyncio.gather(*(self._ask(one) for one in asked), return_exceptions=True)
        found = list(zip(asked, lengths, strict=True))
        loads = [(one, length) for one, length in found if isinstance(length, int)]
        if not loads:
            raise mildest([error for error in lengths if isinstance(error, BaseException)])
        return min(loads, key=lambda load: load[1])[0]

    def _askable(self, without: Collection[str]) -> Sequence[Machine]:
        """Return the machines to ask: none that is too old, and a silent one only if it is last."""
        fit = [one for one in self.machines if one.name not in self._unfit]
        if not fit:
            raise AccountProblem("Every ComfyUI is too old.")
        fit = [one for one in fit if one.name not in without]
        if not fit:
            raise Transient("No other ComfyUI can make it.")
        now = time.monotonic()
        return [one for one in fit if self._silent_until.get(one.name, now) <= now] or fit

    def rest(self, machine: Machine) -> None:
        """Ask a machine that failed only after the others, for a while."""
        self._silent_until[machine.name] = time.monotonic() + _REST_S

    async def _ask(self, machine: Machine) -> int:
        try:
            length = await machine.queue_length()
        except ProviderError:
            self.rest(machine)
            raise
        self._silent_until.pop(machine.name, None)
        return length

    async def inspect(self, workflows: Collection[Workflow]) -> Report:
        """Ask every machine for its version, queue, nodes and models."""
        found = await asyncio.gather(*(_inspect(one, workflows) for one in self.machines))
        self._unfit = {one.name for one in found if one.problem and one.error is None}
        return Report(tuple(found))

    async def close(self) -> None:
        """Close all connections."""
        for machine in self.machines:
            await machine.close()


async def _inspect(machine: Machine, workflows: Collection[Workflow]) -> MachineReport:
    try:
        about = await machine.about()
        if problem := _age_problem(about):
            return MachineReport(name=machine.name, version=about.version, problem=problem)
        return MachineReport(
            name=machine.name,
            version=about.version,
            queue=await machine.queue_length(),
            faults=await _find_faults(machine, about, workflows),
        )
    except ProviderError as error:
        problem = _SILENT if isinstance(error, Transient) else str(error)
        return MachineReport(name=machine.name, problem=problem, error=error)


def _age_problem(about: About) -> str:
    numbers = tuple(map(int, re.findall(r"\d+", about.version)[:3]))
    if numbers >= _OLDEST:
        return ""
    return (
        f"ComfyUI {about.version or 'of an unknown version'} cannot stop a single job: update it "
        f"to {'.'.join(map(str, _OLDEST))} or newer"
    )


async def _find_faults(
    machine: Machine, about: About, workflows: Collection[Workflow]
) -> dict[str, str]:
    classes = tuple(sorted({name for one in workflows for name in one.classes}))
    kinds = await kinds_of(machine, classes)
    faults = {}
    for one in workflows:
        problems = [*problems_in(one.graph, kinds)]
        if not one.makes_png and _WITHOUT_METADATA not in about.arguments:
            problems.append(
                f"Its files would hold the whole workflow: start ComfyUI with {_WITHOUT_METADATA}."
            )
        if problem := metadata_problem(one.graph, one.output):
            problems.append(problem)
        if problems:
            faults[one.slug] = " ".join(problems)
    return faults


def mildest(errors: Collection[BaseException]) -> BaseException:
    """Return an error that passes if there is one: the operator need not act then."""
    return min(errors, key=lambda error: isinstance(error, AccountProblem))


def unfit_error(report: Report) -> AccountProblem | Transient | None:
    """Return why no machine can work; None if one can."""
    if not report.machines or not all(one.problem for one in report.machines):
        return None
    silent = next((one.error for one in report.machines if isinstance(one.error, Transient)), None)
    text = "; ".join(f"{one.name}: {one.problem}" for one in report.machines)
    return Transient(f"No ComfyUI works. {text}.") if silent else AccountProblem(f"{text}.")
