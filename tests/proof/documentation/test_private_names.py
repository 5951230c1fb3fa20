"""Our code uses only those private names of other packages that docs/private-names.md lists."""

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("gateway", "providers", "plugins")
OURS = {"gateway", *(path.stem for name in FOLDERS[1:] for path in (ROOT / name).iterdir())}
# Documented by their packages, despite the underscore.
DOCUMENTED = {"_current_frames", "_exit", "_get_current_object", "_replace"}
# Their packages document that programs set these.
SETTINGS = ("sys.argv", "sys.stdout", "sys.stderr", "PIL.Image.MAX_IMAGE_PIXELS", "quart.g.")


@attrs.frozen
class Source:
    """A parsed file, and the full names of its imports."""

    path: Path
    tree: ast.Module = attrs.field(repr=False, eq=False)
    imported: dict[str, str] = attrs.field(repr=False, eq=False)

    def full_name(self, node: ast.AST) -> str:
        """Return the dotted name of an imported object; empty for anything else."""
        if isinstance(node, ast.Attribute):
            left = self.full_name(node.value)
            return f"{left}.{node.attr}" if left else ""
        return self.imported.get(node.id, "") if isinstance(node, ast.Name) else ""


def read(path: Path, text: str) -> Source:
    tree = ast.parse(text)
    return Source(path, tree, dict(_imports(tree)))


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                yield one.asname or one.name, f"{node.module}.{one.name}"
        elif isinstance(node, ast.Import):
            for one in node.names:
                first = one.name.split(".")[0]
                yield one.asname or first, one.name if one.asname else first


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in {"_", *DOCUMENTED}


def is_foreign(name: str) -> bool:
    return bool(name) and name.split(".", maxsplit=1)[0] not in OURS


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def defined_in(tree: ast.AST) -> set[str]:
    """Return the names that a file defines, and the attributes that its objects set."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found |= {node.attr} if is_self(node.value) else set()
    return found


def uses(source: Source, ours: set[str]) -> Iterator[str]:
    """Yield the private names of other packages that a file uses.

    `ours` has every name that our code defines: a base class may be in another file.
    """
    here = defined_in(source.tree)
    yield from (
        name
        for name in source.imported.values()
        if is_foreign(name) and any(map(is_private, name.split(".")))
    )
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute):
            if is_private(node.attr) and node.attr not in (ours if is_self(node.value) else here):
                yield node.attr
            name = source.full_name(node)
            if isinstance(node.ctx, ast.Store) and is_foreign(name):
                yield from () if name.startswith(SETTINGS) else (name,)
        elif isinstance(node, ast.ClassDef):
            yield from _overrides(source, node)


def _overrides(source: Source, node: ast.ClassDef) -> Iterator[str]:
    """Yield the private methods of other packages' classes that a class overrides."""
    methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    methods |= {one.name for one in node.body if isinstance(one, ast.AsyncFunctionDef)}
    private = sorted(filter(is_private, methods))
    for base in map(source.full_name, node.bases) if private else ():
        if is_foreign(base):
            module, _, name = base.rpartition(".")
            loaded = getattr(importlib.import_module(module), name)
            yield from (method for method in private if hasattr(loaded, method))


def all_uses() -> set[tuple[str, str]]:
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    sources = [read(path, path.read_text("utf-8")) for path in paths]
    ours = {name for source in sources for name in defined_in(source.tree)}
    return {
        (str(source.path.relative_to(ROOT)), name)
        for source in sources
        for name in uses(source, ours)
    }


def listed() -> dict[tuple[str, str], list[str]]:
    """Return the uses that the page lists, with the tests that it names for each."""
    page = (ROOT / "docs/private-names.md").read_text("utf-8")
    rows = re.findall(r"^\| `([^`|]+\.py)` \| ([^|]*) \|(.*)\|$", page, re.MULTILINE)
    return {
        (path, name): re.findall(r"`(tests/[^`]+)`", rest)
        for path, names, rest in rows
        for name in re.findall(r"`([^`]+)`", names)
    }


@pytest.mark.full
def test_the_page_lists_all_private_names_and_no_others():
    sys.setrecursionlimit(3_000)
    assert all_uses() == set(listed())


def test_each_private_name_has_a_test_that_exists():
    missing = {use: tests for use, tests in listed().items() if not tests}
    assert missing == {}
    named = {test for tests in listed().values() for test in tests}
    assert [test for test in named if not (ROOT / test).exists()] == []


def test_every_kind_of_use_is_found():
    text = """
import asyncio, asyncio.streams as streams
import logging
from asyncio import _get_running_loop
from asyncio.streams import StreamReader

class Reader(StreamReader):
    def _maybe_resume_transport(self): self._wakeup_waiter()

asyncio.sleep = None
streams.open_connection()._loop
logging.Handler
"""
    found = set(uses(read(ROOT / "x.py", text), {"_maybe_resume_transport"}))
    assert found == {
        "asyncio._get_running_loop",
        "_maybe_resume_transport",
        "_wakeup_waiter",
        "asyncio.sleep",
        "_loop",
    }
