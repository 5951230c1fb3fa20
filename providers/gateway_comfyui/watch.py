"""The state of the machines, for the operator's pages and `gateway check`."""

from pathlib import Path

import attrs

from gateway import Condition, SettingsError
from gateway_comfyui.fleet import Fleet, MachineReport, Report, unfit_error
from gateway_comfyui.folder import read_folder

# Jobs at one machine beyond which the operator's own runs delay sales.
_LONG_QUEUE = 5


@attrs.define
class Watch:
    """Inspects the machines with a client of its own, also while nothing is bought."""

    fleet: Fleet
    folder: Path
    report: Report = attrs.field(factory=Report)

    async def inspect(self) -> None:
        """Note the state of every machine and workflow."""
        self.report = await self.fleet.inspect(read_folder(self.folder))

    async def conditions(self) -> list[Condition]:
        """Return silent machines, long queues and workflows that are not sold."""
        machines = [
            found for one in self.report.machines if (found := _condition_of(one)) is not None
        ]
        faults = [_fault(slug, text) for slug, text in self.report.faults.items()]
        return [*machines, *faults]


def _condition_of(one: MachineReport) -> Condition | None:
    if one.problem:
        return Condition(
            name="comfyui_machine",
            subject=one.name,
            level="warn",
            title=f"The ComfyUI at {one.name} does not work",
            text=f"No job is sent there: {one.problem}.",
            action="Start it, or take its address out of GATEWAY_COMFYUI_URLS.",
        )
    if one.queue <= _LONG_QUEUE:
        return None
    return Condition(
        name="comfyui_queue",
        subject=one.name,
        level="note",
        title=f"{one.queue} jobs are in the queue of the ComfyUI at {one.name}",
        text="Sales wait for the jobs before them, also for your own runs.",
        action="Wait, or empty the queue in ComfyUI.",
        raises_alarm=False,
    )


def _fault(slug: str, text: str) -> Condition:
    return Condition(
        name="comfyui_workflow",
        subject=slug,
        level="warn",
        title=f"The workflow {slug} is not sold",
        text=text,
        action=f"Repair it, and test it by `gateway comfyui check {slug}`.",
        href=f"/admin/endpoints#{slug}",
        button="Endpoints",
    )


async def check_machines(fleet: Fleet, folder: Path) -> str:
    """Return the row of `gateway check`; raises `SettingsError` with all that is wrong."""
    try:
        report = await fleet.inspect(read_folder(folder))
    finally:
        await fleet.close()
    problems = [str(one) for one in report.machines if one.problem]
    problems += [f"{slug}: {fault}" for slug, fault in report.faults.items()]
    if problems or unfit_error(report) is not None:
        raise SettingsError("; ".join(problems))
    return "; ".join(map(str, report.machines))
