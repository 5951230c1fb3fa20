"""The commands `gateway comfyui add`, `list`, `check` and `remove`."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import attrs
import click

from gateway import SettingsError, Transient, load_settings, usdc
from gateway.errors import ProviderError
from gateway_comfyui.assembly import make_fleet
from gateway_comfyui.checking import kinds_of, metadata_problem, problems_in
from gateway_comfyui.commands.trial import DEFAULT_PROMPT, Trial, run_once
from gateway_comfyui.fleet import Fleet, Report
from gateway_comfyui.folder import parse_workflow, read_workflow
from gateway_comfyui.graphs import graph_of, read_graph_file
from gateway_comfyui.guessing import Guess, guess
from gateway_comfyui.machine import Machine
from gateway_comfyui.settings import PREFIX, ComfyUISettings
from gateway_comfyui.workflows import Graph, Workflow

_FOLDER = "workflows"
_HOUR_S = 3_600
_MICROS = 1_000_000


def _one_sentence(command: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a command; print a mistake, or ComfyUI's problem, as one sentence."""

    @wraps(command)
    def run(**arguments: Any) -> None:
        try:
            asyncio.run(command(**arguments))
        except (SettingsError, ProviderError) as error:
            click.echo(f"gateway: {error}", err=True)
            sys.exit(1)

    return run


@click.group()
def comfyui() -> None:
    """Put workflows of your ComfyUI on sale.

    GATEWAY_COMFYUI_WORKFLOWS names their folder, GATEWAY_COMFYUI_URLS the addresses of ComfyUI.
    """


@comfyui.command()
@click.argument("source", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--last", is_flag=True, help="Take the workflow that ComfyUI ran last.")
@click.option("--name", required=True, help="Name of the offer in its address, such as portrait.")
@click.option("--price", required=True, help="USDC for one result, such as 0.03.")
@click.option("--title", default="", help="Title of the offer. Default: the name.")
@click.option("--hour", default=0.0, help="US dollars that an hour of the machine costs you.")
@click.option("--prompt", default=DEFAULT_PROMPT, help="Prompt of the trial.", show_default=True)
@click.option("--no-trial", is_flag=True, help="Do not run it once.")
@click.option("--replace", is_flag=True, help="Replace the workflow of this name.")
@_one_sentence
async def add(*, source: Path | None, last: bool, name: str, price: str, **options: Any) -> None:
    """Add the workflow of SOURCE, or with --last the newest run.

    SOURCE is a picture that ComfyUI saved, or a workflow in API format. The command guesses the
    inputs of a buyer, compares the nodes and models with ComfyUI, and runs the workflow once.
    """
    section = _section()
    folder = Path(section.workflows or _FOLDER)
    _check_arguments(source, folder / f"{name}.toml", price, last=last, **options)
    fleet = make_fleet(section)
    try:
        machine = await _pick(fleet)
        graph = await _last_graph(fleet) if source is None else read_graph_file(source)
        offer = _Offer(folder, name, price, options["title"] or name, graph)
        found = await _guess(machine, graph)
        workflow = offer.workflow(found)
        trial = None
        if not options["no_trial"]:
            click.echo(f"Running {name} once…")
            trial = await run_once(fleet, workflow, options["prompt"])
    finally:
        await fleet.close()
    _finish(offer, found, trial, options["hour"])
    if not section.workflows:
        click.echo(f"Set GATEWAY_COMFYUI_WORKFLOWS={folder} to put it on sale.")
    click.echo("Put it on sale by gateway reload.")


@comfyui.command("list")
@_one_sentence
async def list_workflows() -> None:
    """List workflows and machines, and why one is not sold."""
    await _print_state(_folder(), ())


@comfyui.command()
@click.argument("names", nargs=-1)
@_one_sentence
async def check(*, names: tuple[str, ...]) -> None:
    """Compare workflows with ComfyUI's nodes and models.

    Without NAMES: all. Ends with code 1 if one cannot be sold.
    """
    if not await _print_state(_folder(), names):
        sys.exit(1)


@comfyui.command()
@click.argument("name")
@_one_sentence
async def remove(*, name: str) -> None:
    """Delete NAME.toml and NAME.json from the folder.

    `gateway reload` then takes it off sale and finishes its paid tasks. After a restart they wait
    for hours for the workflow, then refunds are due.
    """
    path = _known(_folder(), name)
    path.unlink()
    path.with_suffix(".json").unlink(missing_ok=True)
    click.echo(f"Removed {path}. Take it off sale by gateway reload.")


@attrs.frozen
class _Offer:
    """The operator's choices for a new offer."""

    folder: Path
    name: str
    price: str
    title: str
    graph: Graph

    def workflow(self, found: Guess) -> Workflow:
        """Return the workflow of a guess; writes a draft if the guess is not complete."""
        text = found.toml(title=self.title, price=self.price, cost="")
        try:
            return parse_workflow(self.name, text, self.graph)
        except SettingsError as error:
            draft = self.write(text, ".draft")
            raise SettingsError(
                f"{error} Complete {draft}, take .draft off its name and that of "
                f"{self.name}.json.draft, and run `gateway comfyui check {self.name}`."
            ) from None

    def write(self, text: str, ending: str = "") -> Path:
        """Write graph and TOML, and only then replace older ones; return the TOML's place."""
        self.folder.mkdir(parents=True, exist_ok=True)
        graph = json.dumps(self.graph, indent=1, ensure_ascii=False)
        path = self.folder / f"{self.name}.toml{ending}"
        texts = {self.folder / f"{self.name}.json{ending}": f"{graph}\n", path: text}
        for place, content in texts.items():
            _temporary(place).write_text(content, "utf-8")
        for place in texts:
            _temporary(place).replace(place)
        return path


def _temporary(place: Path) -> Path:
    return place.with_name(f"{place.name}.new")


def _check_arguments(
    source: Path | None, path: Path, price: str, *, last: bool, replace: bool, **_: Any
) -> None:
    if last == (source is not None):
        raise SettingsError(
            "Name one source: --last, a picture that ComfyUI saved, or a workflow in API format."
        )
    try:
        usdc(price)
    except ValueError as error:
        raise SettingsError(f"--price: {error}. Example: --price 0.03") from None
    if path.exists() and not replace:
        raise SettingsError(f"{path} exists. Choose another --name, or add --replace.")


async def _pick(fleet: Fleet) -> Machine:
    try:
        return await fleet.pick()
    except Transient:
        names = ", ".join(one.name for one in fleet.machines)
        raise SettingsError(
            f"No ComfyUI answers at {names}. Start it, or set GATEWAY_COMFYUI_URLS."
        ) from None


async def _last_graph(fleet: Fleet) -> Graph:
    """Return the graph of the operator's newest run on any machine."""
    runs = []
    for machine in fleet.machines:
        try:
            runs.append(await machine.last_run())
        except ProviderError:
            click.echo(f"Note: {machine.name} does not answer; its runs are left out.", err=True)
    newest = max(filter(None, runs), key=lambda run: run.begun_ms, default=None)
    if newest is None:
        names = ", ".join(one.name for one in fleet.machines)
        raise SettingsError(
            f"The history of the ComfyUI at {names} has no run of yours among its newest: run the "
            "workflow there once."
        )
    return graph_of(newest.graph, "The last run")


async def _guess(machine: Machine, graph: Graph) -> Guess:
    """Return the guess; raises `SettingsError` for a graph that cannot be sold."""
    kinds = await kinds_of(machine, tuple(sorted({one["class_type"] for one in graph.values()})))
    if problems := list(problems_in(graph, kinds)):
        raise SettingsError(" ".join(problems))
    found = guess(graph, kinds)
    if found.output and (problem := metadata_problem(graph, found.output)):
        raise SettingsError(problem)
    for warning in found.warnings:
        click.echo(f"Note: {warning}", err=True)
    return found


def _finish(offer: _Offer, found: Guess, trial: Trial | None, hour: float) -> None:
    """Write the files, unless the trial cost more than the price."""
    cost = ""
    if trial is not None:
        click.echo(str(trial))
        if hour:
            cost = f"{trial.seconds * hour / _HOUR_S:.6f}"
            click.echo(f"At ${hour:g} an hour, it costs you ${cost}.")
        if cost and float(cost) * _MICROS > usdc(offer.price):
            raise SettingsError(f"That is more than the price of {offer.price} USDC.")
    path = offer.write(text := found.toml(title=offer.title, price=offer.price, cost=cost))
    click.echo(f"\n{text}\nWritten: {path}. Its address is /api/x402/{offer.name}.")


def _section() -> ComfyUISettings:
    return load_settings(needs_wallet=False).section(PREFIX, ComfyUISettings)


def _folder() -> Path:
    folder = _section().workflows
    if not folder:
        raise SettingsError(
            "GATEWAY_COMFYUI_WORKFLOWS is not set. Example: GATEWAY_COMFYUI_WORKFLOWS=workflows"
        )
    return Path(folder)


def _known(folder: Path, name: str) -> Path:
    path = folder / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in folder.glob("*.toml"))) or "none"
        raise SettingsError(f"{folder} has no workflow {name}. It has: {known}.")
    return path


def _read(folder: Path, names: tuple[str, ...]) -> tuple[list[Workflow], dict[str, str]]:
    """Return the workflows, and the mistakes of the others by name."""
    paths = [_known(folder, name) for name in names] or sorted(folder.glob("*.toml"))
    if not paths:
        click.echo(f"{folder} has no workflow: gateway comfyui add --last --name NAME --price USDC")
    workflows, mistakes = [], {}
    for path in paths:
        try:
            workflows.append(read_workflow(path))
        except SettingsError as error:
            mistakes[path.stem] = str(error)
    return workflows, mistakes


async def _print_state(folder: Path, names: tuple[str, ...]) -> bool:
    """Print workflows and machines; return whether all can be sold."""
    workflows, mistakes = _read(folder, names)
    report = await _inspect(make_fleet(_section()), workflows)
    for one in workflows:
        fault = report.faults.get(one.slug)
        state = f"not sold: {fault}" if fault else "ok"
        click.echo(f"{one.slug}  {one.capability}  {one.price} USDC  {state}")
    for slug, mistake in mistakes.items():
        click.echo(f"{slug}  not sold: {mistake}")
    for machine in report.machines:
        click.echo(str(machine))
    has_machine = any(not one.problem for one in report.machines)
    return has_machine and not mistakes and not report.faults


async def _inspect(fleet: Fleet, workflows: list[Workflow]) -> Report:
    try:
        return await fleet.inspect(workflows)
    finally:
        await fleet.close()
