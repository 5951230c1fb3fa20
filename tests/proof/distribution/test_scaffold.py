"""`gateway plugins new`: a project whose tests pass at once, or a clear message."""

import base64
import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway_demo.sample import sample_pdf
from gateway_testing.provider.samples import PICTURE
from tests.conftest import running

ROOT = Path(__file__).parents[3]
KINDS = ((), ("--jobs",), ("--document",), ("--edit",))
LINT = ("--select", "E,F,I,B,UP", "--line-length=100")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(name, *options):
    return CliRunner().invoke(main, ["plugins", "new", name, *options])


def pytest_in(folder, *words):
    """Run a project's own tests without installing it; return how many passed."""
    path = os.pathsep.join(str(ROOT / part) for part in (".", "providers", "plugins"))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "failed" not in run.stdout
    return int(re.search(r"(\d+) passed", run.stdout)[1])


@pytest.mark.full
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_the_tests_of_a_new_project_pass_at_once(here, options):
    result = new("acme-fast", *options)
    assert result.exit_code == 0, result.output
    assert "cd gateway-acme-fast" in result.output
    assert pytest_in(here / "gateway-acme-fast") > 20


# test_plugin_docs.py runs all tests of the first kind, as docs/plugins.md does.
@pytest.mark.parametrize(
    "options",
    [KINDS[1], *(pytest.param(kind, marks=pytest.mark.full) for kind in KINDS[2:])],
    ids=str,
)
def test_a_few_tests_of_a_new_project_pass_at_once(here, options):
    result = new("acme-fast", *options)
    assert result.exit_code == 0, result.output
    assert "cd gateway-acme-fast" in result.output
    few = "what_is_paid_for_is_delivered or refused_key or starts_before or 402"
    assert pytest_in(here / "gateway-acme-fast", "-k", few) == 4


def test_one_kind_is_chosen(here):
    result = new("acme", "--jobs", "--edit")
    assert (result.exit_code, list(here.iterdir())) == (1, [])
    assert "Choose one of --jobs and --edit." in result.output


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_new_project_is_a_plugin(here, options):
    new("gateway-acme", *options)
    project = tomllib.loads((here / "gateway-acme" / "pyproject.toml").read_text())["project"]
    assert project["name"] == "gateway-acme"
    assert project["entry-points"]["gateway"] == {"acme": "gateway_acme"}
    assert project["dependencies"] == ["generation-gateway>=0.1,<0.2"]
    for name in ("src/gateway_acme.py", "tests/test_acme.py", "README.md", ".gitignore"):
        text = (here / "gateway-acme" / name).read_text()
        assert text.strip()
        assert "$" not in text


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_what_is_written_is_clean_python(here, options):
    new("acme", *options)
    for path in (here / "gateway-acme").rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
    run = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", *LINT, "."],
        cwd=here / "gateway-acme",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("name", ["", "Acme", "acme_fast", "1acme", "acme-", "../acme", "a" * 41])
def test_a_bad_name_is_one_sentence(here, name):
    result = new(name)
    assert result.exit_code == 1
    assert "is not a valid plugin name" in result.output
    assert list(here.iterdir()) == []


def test_a_name_of_ours_is_one_sentence(here):
    result = new("openai")
    assert (result.exit_code, list(here.iterdir())) == (1, [])
    assert "gateway plugins new my-openai" in result.output


def test_a_folder_that_is_there_stays_as_it_is(here):
    (here / "gateway-acme").mkdir()
    result = new("acme")
    assert result.exit_code == 1
    assert "The folder gateway-acme already exists here." in result.output
    assert list((here / "gateway-acme").iterdir()) == []


def test_without_a_subcommand_the_plugins_are_listed(here, monkeypatch):
    monkeypatch.setenv("GATEWAY_WALLET", "0x" + "11" * 20)
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "11" * 32)
    result = CliRunner().invoke(main, ["plugins", "--no-health", "--json"])
    assert result.exit_code == 0, result.output
    assert "gateway_openai" in result.output


# A request for each kind, and its price in units of 10⁻⁶ USDC.
PAPER = {"fileBase64": base64.b64encode(sample_pdf()).decode(), "fileName": "report.pdf"}
PHOTO = {"fileBase64": base64.b64encode(PICTURE).decode(), "fileName": "photo.png"}
SALES = {
    (): ("picture", {"prompt": "a boat"}, 50_000),
    ("--jobs",): ("picture", {"prompt": "a boat"}, 50_000),
    ("--document",): ("document", PAPER, 20_000),
    ("--edit",): ("edit", {"prompt": "winter", **PHOTO}, 50_000),
}


@pytest.fixture
def toy(here):
    """Start the fictional vendor of a new project; return its URL."""
    started = []

    def start(folder):
        process = subprocess.Popen(
            [sys.executable, "toy_api.py", "0"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process.stdout.readline().split()[-1]

    yield start
    for process in started:
        process.terminate()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("options", KINDS, ids=str)
async def test_a_new_project_sells_what_its_toy_makes(
    here, toy, settings, payer, monkeypatch, options
):
    slug, body, units = SALES[options]
    # A unique name, because a module is imported once.
    name = "sold" + "".join(options).replace("--", "-")
    prefix = name.replace("-", "_")
    new(name, *options)
    monkeypatch.syspath_prepend(str(here / f"gateway-{name}" / "src"))
    module = importlib.import_module(f"gateway_{prefix}")
    values = {f"{prefix}_api_key": "k", f"{prefix}_base_url": toy(here / f"gateway-{name}")}
    settings = attrs.evolve(settings, plugin_values=values, allow_loopback_links=True)
    async with running(settings, more=[module]) as gateway:
        paid = await gateway.client.post(
            f"/api/x402/{name}-{slug}", json=body, headers={"X-PAYMENT": payer.header(units)}
        )
        answer = await paid.get_json()
        assert paid.status_code == 200, answer
        task = await (await gateway.client.get(f"{answer['statusUrl']}?wait=30")).get_json()
    assert (task["status"], task["payment"]["amount"]) == ("completed", units / 10**6), task
