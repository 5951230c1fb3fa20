"""`gateway plugins dev`: toy vendor, embedded chain, and a gateway that follows the code."""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import click

from gateway.errors import SettingsError
from gateway.settings import load_settings
from gateway_demo.rehearsal.project import Project
from gateway_demo.rehearsal.stage import Stage
from gateway_demo.tour.errors import DemoError
from gateway_demo.tour.guide import end_on_signals
from gateway_demo.tour.processes import Child, choose_port, import_path, open_child

_TOY = "toy_api.py"
_POLL_S = 0.3


def develop(folder: Path, port: int) -> None:
    """Serve the plugin in `folder` until Ctrl-C; a change of its code restarts the gateway.

    Raises `SettingsError` for a folder without a plugin, a busy port and a chain or toy that does
    not start.
    """
    project = Project.read(folder)
    end_on_signals()
    with (
        contextlib.suppress(KeyboardInterrupt),
        tempfile.TemporaryDirectory(prefix="gateway-dev-", ignore_cleanup_errors=True) as temporary,
        _one_kind_of_error(),
    ):
        free = choose_port(port, "--port", command="gateway plugins dev")
        stage = Stage(folder=Path(temporary), port=free, allows_loopback_links=True)
        project.write_metadata(stage.folder / "site")
        with stage.start_chain() as running, start_toy(project, stage.folder) as values:
            environment = {**os.environ, **values, "PYTHONPATH": _path_of(project, stage.folder)}
            workshop = Workshop(project=project, stage=running, environment=environment)
            workshop.introduce(values)
            workshop.run()


@contextlib.contextmanager
def _one_kind_of_error() -> Iterator[None]:
    try:
        yield
    except DemoError as error:
        raise SettingsError(f"{error} {error.log}".strip()) from None


def _path_of(project: Project, folder: Path) -> str:
    return os.pathsep.join((str(folder / "site"), str(project.source), import_path()))


@contextlib.contextmanager
def start_toy(project: Project, folder: Path) -> Iterator[dict[str, str]]:
    """Run the project's toy vendor; yields the variables that lead the plugin to it.

    There is none, and no variable, without the script, and if the plugin's key or address is set.
    """
    names = [f"GATEWAY_{prefix.upper()}" for prefix in project.prefixes]
    script = project.folder / _TOY
    chosen = load_settings(needs_wallet=False).plugin_values
    own = {f"{prefix}_{field}" for prefix in project.prefixes for field in ("api_key", "base_url")}
    if not script.is_file() or own & chosen.keys():
        yield {}
        return
    log = folder / "toy.log"
    with log.open("wb") as output:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = open_child([str(script), "0"], project.folder, environment, output)
    toy = Child(name="toy vendor", log=log, process=process)
    try:
        toy.wait_until(lambda: "http://" in log.read_text(errors="replace"))
        url = log.read_text(errors="replace").split()[-1]
        yield {f"{name}_{field}": value for name in names for field, value in _values(url)}
    finally:
        toy.stop()


def _values(url: str) -> list[tuple[str, str]]:
    return [("API_KEY", "toy"), ("BASE_URL", url)]


@attrs.define(kw_only=True)
class Workshop:
    """The gateway of a plugin under development, and the files that it follows."""

    project: Project
    stage: Stage
    environment: Mapping[str, str] = attrs.field(repr=False)

    def introduce(self, toy: Mapping[str, str]) -> None:
        """Print where the plugin runs and how to buy from it."""
        url = f"http://127.0.0.1:{self.stage.port}"
        addresses = [value for name, value in toy.items() if name.endswith("_BASE_URL")]
        vendor = f"a toy vendor at {addresses[0]}" if addresses else "your vendor, with your key"
        click.echo(f"{self.project.name} sells for play money, with {vendor}.")
        click.echo(f"Shop: {url}/   Ctrl-C stops it. After each change the gateway starts again.")
        click.echo(f"  gateway buy SLUG 'a prompt' --url {url} --key demo")

    def run(self) -> None:
        """Serve until interrupted."""
        place = self.stage.folder / "stage.json"
        place.touch(mode=0o600)
        place.write_text(self.stage.to_json())
        while True:
            before = self.project.stamps()
            gateway = self._start_gateway(place)
            try:
                changes = self._wait_for_changes(gateway, before)
            finally:
                gateway.stop()
            click.echo(f"\nChanged: {', '.join(changes)}. The gateway starts again.")

    def _start_gateway(self, place: Path) -> Child:
        words = ["stage", str(place)]
        process = open_child(words, self.project.folder, self.environment, None)
        return Child(name="gateway", log=Path(os.devnull), process=process)

    def _wait_for_changes(self, gateway: Child, before: Mapping[Path, int]) -> list[str]:
        """Return the changed files; a gateway that ended has printed why."""
        is_running = True
        while not (changes := self.project.find_changes(before)):
            if is_running and gateway.process.poll() is not None:
                is_running = False
                click.echo("The gateway has stopped. It starts again after a change.")
            with contextlib.suppress(subprocess.TimeoutExpired):
                if is_running:
                    gateway.process.wait(_POLL_S)
                    continue
                time.sleep(_POLL_S)
        return changes
