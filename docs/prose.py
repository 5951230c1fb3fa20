"""Check the English of docstrings, comments and pages against the goals of CONTRIBUTING.md.

    python docs/prose.py                          # exits with 1 if a rate is above its goal
    python docs/prose.py --places gateway/tasks   # prints each place of a habit, as file:line

Rates are per 10,000 words, of the whole repository and of the changed files. A single use is no
mistake: changed files may have one use more than the goal.
"""

import argparse
import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_AFTER_WHAT = (
    "is|was|a|an|the|it|they|has|each|every|came|this|that|its|one|no|may|stands|must|needs|nobody"
)
# The goals are about twice the highest rate of six admired codebases: Warehouse, Datasette,
# Procrastinate, httpx, svcs and the x402 SDK.
GOALS = {
    "what-clause": (rf"\b[Ww]hat (?:{_AFTER_WHAT})\b", 8),
    "where-for-if": (r"\b[Ww]here (?:the|a|an|it|there|no|one|its|that|none|nothing)\b", 10),
    "look": (r"\blook(?:s|ed|ing)?\b", 5),
    "tell": (r"\b(?:told|tells?)\b", 4),
    "said": (r"\b(?:says?|said|hears?|heard)\b", 6),
    "so-many": (r"\bso (?:many|long|much|often|few)\b", 1.5),
    "nobody": (r"\b[Nn]obody\b|\b[Ww]hoever\b", 1),
    "stranger": (r"\b[Ss]trangers?\b", 1),
    "stands": (r"\bstands?\b", 1),
    "anew": (r"\banew\b|\ball the same\b|\bmeanwhile\b|\bby (?:itself|themselves)\b", 1.5),
}
# A name in code is no phrase.
_CODE = re.compile(r"`[^`]*`")
ROOT = Path(__file__).parents[1]


class Line(NamedTuple):
    """A line of a docstring, a comment or a page."""

    file: str
    number: int
    text: str


def main() -> int:
    """Return the process's exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--places", nargs="+", metavar="PATH", help="files or folders to list")
    places = parser.parse_args().places
    if places:
        for lines in _groups(_git("ls-files", *places)).values():
            _print_places(lines, GOALS)
        return 0
    changed = _changed_files()
    exceeded = [
        is_exceeded
        for name, lines in _groups(_git("ls-files")).items()
        for is_exceeded in (
            _exceeds(name, lines),
            _exceeds(f"changed {name}", [line for line in lines if line.file in changed], 1),
        )
    ]
    return 1 if any(exceeded) else 0


def _changed_files() -> set[str]:
    """Files that differ from the branch that this work will land on; none if it is not known."""
    base = _git("merge-base", "origin/main", "HEAD")
    return set(_git("diff", "--name-only", *base)) if base else set()


def _exceeds(name: str, lines: list[Line], spare: int = 0) -> bool:
    """Whether a habit is above its goal, which is then printed."""
    words = sum(len(line.text.split()) for line in lines)
    above = {}
    for habit, (pattern, goal) in GOALS.items():
        count = sum(len(re.findall(pattern, line.text)) for line in lines)
        if count > goal * words / 10_000 + spare:
            above[habit] = (pattern, goal)
            print(f"{name}: {habit}: {count} in {words:,} words; the goal is {goal} in 10,000")
    if spare:
        _print_places(lines, above)
    return bool(above)


def _print_places(lines: list[Line], habits: dict[str, tuple[str, float]]) -> None:
    for habit, (pattern, _) in habits.items():
        for file, number, text in lines:
            if re.search(pattern, text):
                print(f"{file}:{number}: {habit}: {text.strip()}")


def _groups(files: Iterable[str]) -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = {"code": [], "tests": [], "pages": []}
    for file in files:
        if not (ROOT / file).exists():
            continue  # deleted, and not committed yet
        if file.endswith(".py"):
            groups["tests" if file.startswith("tests/") else "code"] += _comments(file)
        elif file.endswith(".md") or file == "static/llms.txt":
            groups["pages"] += _sentences(file)
    return groups


def _comments(file: str) -> Iterator[Line]:
    """Yield the lines of a module's docstrings and comments."""
    with tokenize.open(ROOT / file) as source:
        text = source.read()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("# "):
            yield Line(file, number, _CODE.sub("", line.strip()[2:]))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            for offset, line in enumerate((ast.get_docstring(node) or "").splitlines()):
                yield Line(file, node.body[0].lineno + offset, _CODE.sub("", line))


def _sentences(file: str) -> Iterator[Line]:
    """Yield the lines of a page, without its code blocks."""
    is_code = False
    for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield Line(file, number, _CODE.sub("", line))


def _git(*args: str) -> list[str]:
    command = ["git", "-C", str(ROOT), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
