"""The built wheel, installed in a clean environment beside folders with our names."""

import hashlib
import json
import os
import re
import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest

from gateway.plugins.installed import BUNDLED
from gateway.version import VERSION
from tests import hidden_models
from tests.conftest import WALLET
from tests.proof.distribution.clean_place import ROOT, CleanPlace, built

EXAMPLES = ROOT / "docs" / "examples"
ACME, VOUCHERS = EXAMPLES / "gateway-acme", EXAMPLES / "gateway-vouchers"
SETTINGS = {
    "GATEWAY_WALLET": WALLET,
    "GATEWAY_SETTLEMENT_KEY": hashlib.sha256(b"the wheel").hexdigest(),
    "GATEWAY_SANDBOX": "true",
    "GATEWAY_PLUGINS_DISABLED": hidden_models.NAMES,
}


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory):
    """Return a way to run `gateway` from the wheel, in a folder with traps."""
    place = CleanPlace.made(tmp_path_factory.mktemp("clean"), wheel)
    for trap in ("plugins", "providers", "static"):
        (place.work / trap).mkdir()
    return lambda *arguments: place.run(*arguments, **SETTINGS)


@pytest.fixture(scope="module")
def with_examples(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanPlace:
    """Return a clean environment with the wheel and the example plugins, without the checkout."""
    folder = tmp_path_factory.mktemp("examples")
    wheels = []
    for example in (ACME, VOUCHERS):
        copy = shutil.copytree(example, folder / example.name)
        wheels.append(built(copy, folder / "wheels" / example.name))
    place = CleanPlace.made(folder / "clean", wheel, *wheels)
    for example in (ACME, VOUCHERS):
        shutil.copytree(example / "tests", place.work / "tests" / example.name)
    return place


def test_the_wheel_holds_the_program_and_no_folders_of_the_checkout(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0].removesuffix(".py") for name in names}
    assert {"gateway", *BUNDLED} <= tops
    assert not tops & {"plugins", "providers", "static", "tests", "docs", "bench"}
    assert "gateway/web/static/llms.txt" in names
    assert "gateway/web/static/pages/home.html" in names
    assert "gateway/web/static/web/manifest.json" in names
    assert "gateway/store/sqlite/migrations/0001_initial.sql" in names
    assert "gateway_nodes/postgres/migrations/0001_initial.sql" in names
    for kind in ("picture", "jobs", "document", "edit"):
        assert f"gateway_testing/new_plugin/{kind}/plugin.py.txt" in names
    assert any(name.endswith(".ttf") for name in names)
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.full  # what a release promises
def test_another_checkout_on_another_day_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in ("gateway", "providers", "plugins", "static"):
        no_bytecode = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, checkout / name, ignore=no_bytecode)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, checkout / name)
    for file in checkout.rglob("*.py"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
        file.chmod(0o600)
    again = built(checkout, tmp_path / "wheel")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_it_runs_from_the_wheel(installed) -> None:
    where = installed("-c", "import gateway; print(gateway.__file__)")
    assert "site-packages" in where.stdout, where.stderr
    plugins = installed("-m", "gateway", "plugins", "--no-health", "--json")
    assert plugins.returncode == 0, plugins.stderr
    rows = json.loads(plugins.stdout)
    assert {row["plugin"] for row in rows} == set(BUNDLED)
    assert not [row for row in rows if "left out" in row["note"]]
    endpoints = json.loads(installed("-m", "gateway", "endpoints", "--json").stdout)
    assert {row["slug"] for row in endpoints} == {
        "document-parser",
        "sandbox-extract",
        "sandbox-image",
        "sandbox-image-edit",
    }


@pytest.mark.full
def test_the_pages_are_in_the_wheel(installed) -> None:
    ask = """
import asyncio
from gateway.app import create_app

async def main():
    app = create_app()
    async with app.test_app():
        answer = await app.test_client().get("/llms.txt")
        print(answer.status_code, "sandbox-image" in await answer.get_data(as_text=True))

asyncio.run(main())
"""
    answer = installed("-c", ask)
    assert "200 True" in answer.stdout, answer.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("example", "module", "few"),
    [
        # In the gate, test_plugin_docs.py makes a provider, tests it and sells with the wheel.
        pytest.param(ACME, "gateway_acme", None, marks=pytest.mark.full),
        pytest.param(VOUCHERS, "gateway_vouchers", None, marks=pytest.mark.full),
        (VOUCHERS, "gateway_vouchers", "two_tasks_at_once or start_anew or fifty_at_once"),
    ],
)
def test_a_third_partys_plugin_passes_its_tests_beside_the_wheel(
    with_examples: CleanPlace, example: Path, module: str, few: str | None
) -> None:
    tests = [f"tests/{example.name}", *([] if few is None else ["-k", few])]
    run = with_examples.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    passed = int(re.search(r"(\d+) passed", run.stdout)[1])
    assert passed > 25 if few is None else passed > 1
    where = with_examples.run("-c", f"import {module}; print({module}.__file__)")
    assert "site-packages" in where.stdout


def listed(place: CleanPlace, plugin: str, **settings: str) -> dict:
    run = place.run("-m", "gateway", "plugins", "--no-health", "--json", **SETTINGS, **settings)
    assert run.returncode == 0, run.stderr
    (mine,) = [one for one in json.loads(run.stdout) if one["plugin"] == plugin]
    return mine


@pytest.mark.full
def test_a_third_partys_plugin_sells_once_it_has_its_key(with_examples: CleanPlace) -> None:
    off = listed(with_examples, "gateway_acme")
    assert off["endpoints"] == ""
    assert "GATEWAY_ACME_API_KEY" in off["note"]
    sold = listed(with_examples, "gateway_acme", GATEWAY_ACME_API_KEY="a-key")
    assert sold["endpoints"] == "acme-picture"
    assert sold["from"].startswith("gateway-acme 1.0.0")


@pytest.mark.full
def test_a_third_partys_payment_method_is_on_once_it_has_its_secret(
    with_examples: CleanPlace,
) -> None:
    off = listed(with_examples, "gateway_vouchers")
    assert "GATEWAY_VOUCHERS_SECRET is not set" in off["note"]
    on = listed(with_examples, "gateway_vouchers", GATEWAY_VOUCHERS_SECRET=40 * "s")
    assert on["note"] == "accepts payments of its own kind"
    assert on["from"].startswith("gateway-vouchers 1.0.0")


def test_the_examples_ask_for_this_version_of_the_gateway() -> None:
    major, minor, _ = VERSION.split(".")
    for example in (ACME, VOUCHERS):
        project = tomllib.loads((example / "pyproject.toml").read_text("utf-8"))["project"]
        (needed,) = project["dependencies"]
        assert f">={major}.{minor}" in needed
