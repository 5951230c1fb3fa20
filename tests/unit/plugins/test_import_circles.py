"""No module imports itself through others, not even for types."""

import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# Comes with import-linter, which an installation without the lock may lack.
grimp = pytest.importorskip("grimp")
ROOT = Path(__file__).parents[3]


def test_no_import_circle():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["importlinter"]["root_packages"]
    graph = grimp.build_graph(*packages, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 500
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise AssertionError(f"move what both need into a module below both: {circle}") from None
