"""`make proof` records its runs in docs/proof-runs.md."""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.proof import record

ROOT = Path(__file__).parents[3]
# Imports programs by name; of a package, what `python -m` runs.
IMPORTS = """
import importlib, importlib.util, sys
for name in sys.argv[1:]:
    is_package = importlib.util.find_spec(name).submodule_search_locations is not None
    importlib.import_module(f"{name}.__main__" if is_package else name)
"""
TABLE = "# Runs\n\n| proof | date |\n|---|---|\n"


@pytest.fixture
def ran(monkeypatch, tmp_path: Path) -> list:
    """The commands that were run; `make crash` fails."""
    commands: list[list[str]] = []

    def run(command, **_keywords):
        commands.append(command)
        return subprocess.CompletedProcess(command, int("crash" in command), "1234567\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(record, "PAGE", tmp_path / "runs.md")
    record.PAGE.write_text(TABLE)
    return commands


def test_each_proof_has_one_row_and_the_others_run_after_a_failure(ran):
    assert record.main(["sim", "crash", "races"]) == 1
    assert record.main(["sim"]) == 0
    made = [command[1] for command in ran if command[0] == "make"]
    assert made == ["sim", "crash", "races", "sim"]
    rows = record.PAGE.read_text().removeprefix(TABLE).splitlines()
    assert [row.split("|")[1].strip() for row in rows] == [
        "`make sim`",
        "`make crash`",
        "`make races`",
    ]
    assert ["held" in row for row in rows] == [True, False, True]


def test_a_row_names_the_day_the_commit_and_the_result():
    at = datetime(2026, 11, 26, 12, tzinfo=UTC)
    row = record.make_row("sim", at, "1234567", 600, is_held=True)
    assert row == "| `make sim` | 2026-11-26 | 1234567 | 10 min | held |"
    assert record.with_row(TABLE, "sim", row) == TABLE + row + "\n"


def test_the_page_takes_rows():
    page = (ROOT / "docs/proof-runs.md").read_text("utf-8")
    row = record.make_row("none", datetime.now(UTC), "1234567", 60, is_held=False)
    assert record.with_row(page, "none", row).endswith(f"|\n{row}\n")


def test_every_proof_can_start_outside_of_pytest():
    names = set(re.findall(r"-m (tests\.proof\.[a-z._]+)", (ROOT / "Makefile").read_text("utf-8")))
    assert {"tests.proof.fuzz", "tests.proof.crashes.power"} < names
    command = [sys.executable, "-c", IMPORTS, *sorted(names)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
