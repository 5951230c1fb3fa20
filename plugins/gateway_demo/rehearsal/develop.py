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
from gateway_demo.rehearsal.project import Project, find_changes, stamps_of
from gateway_demo.rehearsal.stage import Stage
from gateway_demo.tour.errors import DemoError
from gateway_demo.tour.guide import end_on_signals
from gateway_demo.tour.processes import Child, choose_port, import_path, open_child

_TOY = "toy_api.py"
_POLL_S = 0.3


def develop(folder: Path, port: int) -> None:
    """Serve the plugin in `folder` until Ctrl-C; a change of its files restarts toy and gateway.

    Raises `SettingsError` for a folder without a plugin, a busy port and a chain that does not
    start.
    """
    Project.read(folder)
    end_on_signals()
    with (
        contextlib.suppress(KeyboardInterrupt),
        tempfile.TemporaryDirectory(prefix="gateway-dev-", ignore_cleanup_errors=True) as temporary,
    ):
        stage = Stage(folder=Path(temporary), port=_choose(port), allows_loopback_links=True)
        with stage.start_chain() as running:
            Workshop(folder=folder, stage=running).run()


def _choose(port: int) -> int:
    try:
        return choose_port(port, "--port", command="gateway plugins dev")
    except DemoError as error:
        raise SettingsError(str(error)) from None


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
    """A plugin under development: its folder, and the stage on which it sells."""

    folder: Path
    stage: Stage

    def run(self) -> None:
        """Serve until interrupted; a mistake is printed, and the next change tried."""
        place = self.stage.folder / "stage.json"
        place.touch(mode=0o600)
        place.write_text(self.stage.to_json())
        while True:
            before = stamps_of(self.folder)
            try:
                changes = self._serve_until_changed(place, before)
            except (SettingsError, DemoError) as error:
                click.echo(f"{error} {getattr(error, 'log', '')}".strip())
                changes = self._wait_for_changes(before, None)
            click.echo(f"\nChanged: {', '.join(changes)}. The gateway starts again.")

    def _serve_until_changed(self, place: Path, before: Mapping[Path, int]) -> list[str]:
        """Run toy and gateway; return the changed files."""
        project, site = Project.read(self.folder), self.stage.folder / "site"
        project.write_metadata(site)
        path = os.pathsep.join((str(site), str(project.source), import_path()))
        with start_toy(project, self.stage.folder) as values:
            self._introduce(project, values)
            environment = {**os.environ, **values, "PYTHONPATH": path}
            process = open_child(["stage", str(place)], self.folder, environment, None)
            gateway = Child(name="gateway", log=Path(os.devnull), process=process)
            try:
                return self._wait_for_changes(before, process)
            finally:
                gateway.stop()

    def _introduce(self, project: Project, toy: Mapping[str, str]) -> None:
        """Print where the plugin sells, and how to buy from it."""
        url = f"http://127.0.0.1:{self.stage.port}"
        addresses = [value for name, value in toy.items() if name.endswith("_BASE_URL")]
        vendor = f"a toy vendor at {addresses[0]}" if addresses else "its vendor by your settings"
        click.echo(f"{project.name} sells for play money, with {vendor}.")
        click.echo(f"Shop: {url}/   Ctrl-C stops it. After each change the gateway starts again.")
        click.echo(f"  gateway buy SLUG 'a prompt' --url {url} --key demo")

    def _wait_for_changes(
        self, before: Mapping[Path, int], gateway: subprocess.Popen[bytes] | None
    ) -> list[str]:
        """Return the changed files; a gateway that ended has printed why."""
        while not (changes := find_changes(self.folder, before)):
            if gateway is not None and gateway.poll() is not None:
                gateway = None
                click.echo("The gateway has stopped. It starts again after a change.")
            time.sleep(_POLL_S)
        return changes
