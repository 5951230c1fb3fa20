"""A bundled package is named in each place that must know it: the messages are the checklist."""

import importlib.util
import tomllib
from pathlib import Path

import pytest

from gateway.plugins.installed import BUNDLED, OPTIONAL_PARTS

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {one["name"]: one for one in PROJECT["tool"]["importlinter"]["contracts"]}
# They have tests of their own: plans for any model, a drawing program, a parser, and payments.
NO_KIT = {"gateway_sandbox_image", "gateway_documents"}
PROVIDERS = [name for name in BUNDLED if (ROOT / "providers" / name).is_dir()]
LAYERS = "Plugins import the public names only"


def packages() -> set[str]:
    """Every package below `plugins` and `providers`."""
    folders = (*(ROOT / "plugins").iterdir(), *(ROOT / "providers").iterdir())
    return {one.name for one in folders if (one / "__init__.py").is_file()}


@pytest.mark.parametrize("name", sorted(packages()))
def test_the_import_contracts_know_it(name):
    roots = PROJECT["tool"]["importlinter"]["root_packages"]
    assert name in roots, f"add {name} to root_packages of [tool.importlinter] in pyproject.toml"
    forbidden = CONTRACTS["The core never imports a plugin"]["forbidden_modules"]
    assert name in forbidden, f"add {name} to the contract that the core imports no plugin"


@pytest.mark.parametrize("name", [one for one in BUNDLED if one not in OPTIONAL_PARTS])
def test_it_may_import_public_names_only(name):
    assert name in CONTRACTS[LAYERS]["source_modules"], f"add {name} to the contract {LAYERS!r}"


@pytest.mark.parametrize("name", [one for one in PROVIDERS if one not in NO_KIT])
def test_the_kit_runs_on_it(name):
    short = name.removeprefix("gateway_")
    path = ROOT / "tests" / "proof" / "kit" / f"test_kit_{short}.py"
    assert path.is_file(), f"write {path.relative_to(ROOT)}: the kit with the adapter's plugin"


@pytest.mark.parametrize("name", PROVIDERS)
def test_its_table_of_models_is_checked_for_losses(name):
    if importlib.util.find_spec(f"{name}.models") is None:
        return
    table = ROOT / "tests" / "proof" / "providers" / "test_no_loss.py"
    assert f"{name}.models" in table.read_text(), f"add {name}.models to TABLES of {table.name}"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_document_tells_operators_about_it(name):
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    short = name.removeprefix("gateway_").replace("_", "-")
    text = "\n".join(page.read_text() for page in pages).lower()
    assert name in text or short in text, f"add {name} to docs/providers.md or docs/self-hosted.md"
