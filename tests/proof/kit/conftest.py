"""Long timeouts for busy machines, and databases that are already migrated."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from zlib import crc32

import attrs
import pytest

import gateway_sandbox_image
from gateway.testing import ProviderContract
from gateway_sandbox_image import renderer
from tests.migrated_databases import put_database

_PATIENCE_S = 1800.0
_THIRDS = 3
_FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In the short form, play a third of the scenes per provider, and one variant of each.

    The thirds rotate, so each scene is played with every third provider.
    """
    scenes = defaultdict(list)
    for item in items:
        if item.path.is_relative_to(_FOLDER) and issubclass(item.cls or object, ProviderContract):
            scenes[item.cls, item.originalname].append(item)
    providers = list(dict.fromkeys(provider for provider, _ in scenes))
    names = sorted({name for _, name in scenes})
    for (provider, name), variants in scenes.items():
        is_played = (providers.index(provider) + names.index(name)) % _THIRDS == 0
        kept = crc32(f"{provider.__name__} {name}".encode()) % len(variants)
        for item in variants:
            if not is_played or item is not variants[kept]:
                item.add_marker(pytest.mark.full)


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """The painter runs at low priority, so on a busy machine it takes minutes."""
    draw = renderer.draw
    for name in ("ENDPOINT", "EDIT"):
        slow = attrs.evolve(getattr(gateway_sandbox_image, name), timeout_s=_PATIENCE_S)
        monkeypatch.setattr(gateway_sandbox_image, name, slow)
    monkeypatch.setattr("gateway_testing.provider.gateway_under_test.PATIENCE_S", _PATIENCE_S)
    monkeypatch.setattr(
        renderer, "draw", lambda *order, timeout_s: draw(*order, timeout_s=_PATIENCE_S)
    )


@pytest.fixture(autouse=True)
def _migrated(tmp_path):
    """Give each gateway a database that needs no migration."""
    put_database(tmp_path / "gateway.db")


def report_of(folder: Path, nodes: list[str]) -> str:
    """Run tests of a folder in a pytest of their own; return its output."""
    (folder / "pytest.ini").write_text(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\npythonpath = .\n"
    )
    root = _FOLDER.parents[2]
    path = os.pathsep.join(str(root / part) for part in (".", "providers", "plugins"))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", *nodes],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "HOME": str(folder), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return run.stdout
