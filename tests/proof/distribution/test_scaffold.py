"""`gateway plugins new`: a project whose tests pass at once, or one sentence."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.plugins import plugins

ROOT = Path(__file__).parents[3]
LINT = ("--select", "E,F,I,B,UP", "--line-length=100")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(name):
    return CliRunner().invoke(plugins, ["new", name])


def pytest_in(folder):
    """Run a project's own tests, without installing it."""
    path = os.pathsep.join(str(ROOT / part) for part in (".", "providers", "plugins"))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_tests_of_a_new_project_pass_at_once(here):
    result = new("acme-fast")
    assert result.exit_code == 0, result.output
    assert "cd gateway-acme-fast" in result.output
    run = pytest_in(here / "gateway-acme-fast")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "failed" not in run.stdout
    passed = int(run.stdout.rsplit(" passed", 1)[0].rsplit(None, 1)[-1])
    assert passed > 20


def test_a_new_project_is_a_plugin(here):
    new("gateway-acme")
    project = tomllib.loads((here / "gateway-acme" / "pyproject.toml").read_text())["project"]
    assert project["name"] == "gateway-acme"
    assert project["entry-points"]["gateway"] == {"acme": "gateway_acme"}
    assert project["dependencies"] == ["generation-gateway>=0.1,<0.2"]
    for name in ("src/gateway_acme.py", "tests/test_acme.py", "README.md", ".gitignore"):
        text = (here / "gateway-acme" / name).read_text()
        assert text.strip()
        assert "$" not in text


def test_what_is_written_is_clean_python(here):
    new("acme")
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
    assert "is no name for a plugin" in result.output
    assert list(here.iterdir()) == []


def test_a_name_of_ours_is_one_sentence(here):
    result = new("openai")
    assert (result.exit_code, list(here.iterdir())) == (1, [])
    assert "gateway plugins new my-openai" in result.output


def test_a_folder_that_is_there_stays_as_it_is(here):
    (here / "gateway-acme").mkdir()
    result = new("acme")
    assert result.exit_code == 1
    assert "There is a folder gateway-acme here already." in result.output
    assert list((here / "gateway-acme").iterdir()) == []


def test_without_a_subcommand_the_plugins_are_listed(here, monkeypatch):
    monkeypatch.setenv("GATEWAY_WALLET", "0x" + "11" * 20)
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "11" * 32)
    result = CliRunner().invoke(plugins, ["--no-health", "--json"])
    assert result.exit_code == 0, result.output
    assert "gateway_openai" in result.output
