"""A plugin with tables, installed for one test."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ORDERS = {
    "sqlite": "CREATE TABLE acme_orders (task_id TEXT REFERENCES tasks (id), note TEXT) STRICT;",
    "postgres": "CREATE TABLE acme_orders (task_id TEXT REFERENCES tasks (id), note TEXT);",
}
Install = Callable[..., None]


@pytest.fixture
def install_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Write files of the plugin `acme` and its entry point; a later call replaces them.

    The plugin's own code exits the process: no store may import it.
    """
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(
        files: dict[str, str | dict[str, str]],
        *,
        name: str = "acme",
        package: str = "gateway_acme",
    ) -> None:
        folder = site / package
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("raise SystemExit('it was imported')")
        for database in ("sqlite", "postgres"):
            target = folder / "migrations" / database
            target.mkdir(parents=True, exist_ok=True)
            for old in target.glob("*.sql"):
                old.unlink()
            for file, sql in files.items():
                (target / file).write_text(sql if isinstance(sql, str) else sql[database])
        about = site / f"{package}-1.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        entry = f"[gateway.migrations]\n{name} = {package}.migrations\n"
        (about / "entry_points.txt").write_text(entry)
        importlib.invalidate_caches()
        assert package not in sys.modules

    return install
