"""Runs proofs in full depth, one after the other, and records the results: `make proof`.

`python -m tests.proof.record sim crash` runs `make sim` and `make crash`, and writes the date, the
commit and the result of each into docs/proof-runs.md. A row stays until that proof runs again.
"""

import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs/proof-runs.md"
_ROW = re.compile(r"^\| `make (?P<name>[a-z-]+)` \|.*$", re.MULTILINE)


def main(names: list[str]) -> int:
    """Run the proofs; return how many failed."""
    failed = 0
    for name in names:
        commit, began = _commit(), time.monotonic()
        is_held = subprocess.run(["make", name], cwd=_ROOT, check=False).returncode == 0
        failed += not is_held
        row = make_row(name, datetime.now(UTC), commit, time.monotonic() - began, is_held=is_held)
        PAGE.write_text(with_row(PAGE.read_text("utf-8"), name, row), "utf-8")
        sys.stdout.write(row + "\n")
    return failed


def make_row(name: str, at: datetime, commit: str, seconds: float, *, is_held: bool) -> str:
    """Return the table row of one run."""
    result = "held" if is_held else "**failed**"
    return f"| `make {name}` | {at:%Y-%m-%d} | {commit} | {seconds / 60:.0f} min | {result} |"


def with_row(page: str, name: str, row: str) -> str:
    """Return the page with a proof's row replaced, or appended."""
    for found in _ROW.finditer(page):
        if found["name"] == name:
            return page[: found.start()] + row + page[found.end() :]
    return page.rstrip("\n") + f"\n{row}\n"


def _commit() -> str:
    commit = _git("rev-parse", "--short", "HEAD")
    return f"{commit} and changes" if _git("status", "--porcelain", "--", "gateway") else commit


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=_ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
