"""Each command has a snapshot with its present help: `make quick` runs no other snapshots."""

import click
import pytest
from click.testing import CliRunner

from gateway.cli import main
from tests.unit.cli.test_snapshots import COLUMNS, SNAPSHOTS, _helps

_STALE = "stale: UPDATE_SNAPSHOTS=1 .venv/bin/python -m pytest tests/unit/cli/test_snapshots.py"
NAMES = main.list_commands(click.Context(main))


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_has_the_present_help(name):
    command = main.get_command(click.Context(main), name)
    snapshot = (SNAPSHOTS / f"{name}.txt").read_text("utf-8")
    for line in _helps(command, (name,)):
        env = {"COLUMNS": str(COLUMNS)}
        shown = CliRunner().invoke(main, line.split(), env=env, prog_name="gateway").output
        assert f"$ gateway {line}\n{shown}" in snapshot, _STALE


def test_no_snapshot_is_left_of_a_command_that_is_gone():
    kept = {path.stem for path in SNAPSHOTS.glob("*.txt")} - {"gateway"}
    assert kept == set(NAMES), _STALE
