"""Commands of plugins: found by entry points, listed from tables, refused while disabled."""

import ast
import importlib.metadata
import sys
import tomllib
from pathlib import Path

import pytest

from gateway.installed import BUNDLED_OPENERS
from gateway.plugins import installed
from gateway.store import plugin_tables
from tests.third_party_plugins import command

__all__ = ["command"]

# As in docs/plugins.md.
ACME_COMMANDS = """
# gateway_acme/commands.py
COMMANDS = {
    "acme-models": ("gateway_acme.models:models", "List the models of Acme."),
}
"""
ACME_MODELS = '''
# gateway_acme/models.py
import click


@click.command("acme-models")
def models() -> None:
    """List the models of Acme."""
    click.echo("fast-1")
'''
ROOT = Path(__file__).parents[3]
ROOTS = ("plugins", "providers")
GREET = """
import click

@click.command("{name}")
@click.option("--name", default="you")
def run(*, name):
    click.echo(f"{says} {{name}}")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a third party's package with commands; importing the package itself fails."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def add(package: str, table: str, *, says: str = "hello", name: str = "greet") -> None:
        folder = site / package
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "table.py").write_text(table)
        (folder / "greet.py").write_text(GREET.format(name=name, says=says))
        about = site / f"{package}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        row = f"[gateway.commands]\nany = {package}.table:COMMANDS\n"
        (about / "entry_points.txt").write_text(row)
        importlib.invalidate_caches()

    yield add
    for name in [each for each in sys.modules if each.startswith(("acme_", "gateway_acme"))]:
        del sys.modules[name]


def table(package: str, name: str = "greet") -> str:
    return f'COMMANDS = {{"{name}": ("{package}.greet:run", "Greet {package}.")}}\n'


def test_the_command_of_the_documentation_works(install, command, tmp_path):
    install("gateway_acme", ACME_COMMANDS)
    (tmp_path / "site" / "gateway_acme" / "models.py").write_text(ACME_MODELS)
    assert "  acme-models    List the models of Acme.\n" in command("--help").stdout
    assert command("acme-models").stdout == "fast-1\n"


def test_a_command_of_a_third_party_is_listed_and_runs(install, command):
    install("acme_one", table("acme_one"))
    assert "  greet          Greet acme_one.\n" in command("--help").stdout
    assert command("greet", "--name", "Ann").stdout == "hello Ann\n"


def test_the_list_imports_no_plugin_and_not_the_package_of_its_table(install, command, tmp_path):
    install("acme_one", table("acme_one"))
    (tmp_path / "site" / "acme_one" / "__init__.py").write_text("raise RuntimeError('imported')")
    listed = command("--help")
    assert (listed.exit_code, listed.stderr) == (0, "")
    assert "Greet acme_one." in listed.stdout


def test_a_name_of_the_gateway_stays_the_gateways(install, command):
    install("acme_one", table("acme_one", name="serve"), name="serve")
    listed = command("--help")
    assert "Run the gateway until SIGTERM." in listed.stdout
    assert "Greet" not in listed.stdout
    warning = "The command serve of acme_one is left out: the gateway has one itself."
    assert listed.stderr == f"gateway: {warning}\n"
    assert "Run the gateway until SIGTERM." in command("serve", "--help").stdout


@pytest.mark.parametrize(
    ("name", "owner"), [("greet", "acme_one"), ("buy", "gateway_buyer")], ids=["third", "bundled"]
)
def test_of_two_plugins_the_first_has_the_name(install, command, name, owner):
    install("acme_two", table("acme_two", name), says="two", name=name)
    install("acme_one", table("acme_one", name), says="one", name=name)
    warning = f"The command {name} of acme_two is left out: {owner} has one, too.\n"
    assert warning in command("--help").stderr
    ran = command(name, "--help")
    assert warning in ran.stderr
    assert "two" not in ran.stdout


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("import sys; sys.exit('no')", "SystemExit: no"),
        ("TABLE = {}", "AttributeError: module 'acme_one.table' has no attribute 'COMMANDS'"),
        ("COMMANDS = {'greet': (1, 'x')}", "has a row that is not made of strings"),
        ("COMMANDS = {'greet': 'acme_one.greet:run'}", "ValueError: too many values to unpack"),
    ],
)
def test_a_table_with_a_mistake_leaves_out_its_own_commands_only(install, command, text, why):
    install("acme_one", text)
    install("acme_two", table("acme_two"))
    listed = command("--help")
    assert listed.exit_code == 0
    assert listed.stderr.startswith("gateway: The commands of acme_one are left out: ")
    assert why in listed.stderr
    assert "Greet acme_two." in listed.stdout


def test_a_table_that_is_not_there_is_named(install, command, tmp_path):
    install("acme_one", "")
    (tmp_path / "site" / "acme_one" / "table.py").unlink()
    assert "No module named acme_one.table\n" in command("--help").stderr


@pytest.mark.parametrize("name", ["acme_one", "acme-one"])
@pytest.mark.parametrize("line", [("greet",), ("greet", "--name", "Ann", "more"), ("greet", "-h")])
def test_a_command_of_a_disabled_plugin_says_so(install, command, monkeypatch, name, line):
    install("acme_one", table("acme_one"))
    monkeypatch.setenv("GATEWAY_PLUGINS_DISABLED", f"gateway_kie, {name}")
    ran = command(*line)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == (
        "gateway: `gateway greet` belongs to acme_one, which GATEWAY_PLUGINS_DISABLED disables.\n"
    )


@pytest.mark.parametrize("value", ['"gateway_buyer"', '["gateway_buyer"]'])
def test_a_bundled_plugin_is_disabled_in_the_file_too(command, tmp_path, value):
    (tmp_path / "gateway.toml").write_text(f"plugins_disabled = {value}\n")
    ran = command("buy")
    assert ran.exit_code == 1
    assert "`gateway buy` belongs to gateway_buyer" in ran.stderr
    # Commands that load every plugin know the name.
    assert command("plugins", "--no-health").exit_code == 0


def test_a_file_that_cannot_be_read_stops_no_command_that_needs_no_settings(command, tmp_path):
    (tmp_path / "gateway.toml").write_text("plugins_disabled = [")
    assert command("hash-password", "--help").exit_code == 0


def test_the_bundled_plugins_are_listed_in_code_as_they_are_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"]
    assert set(groups["gateway"].values()) == set(installed.BUNDLED)
    assert sorted(groups[installed.COMMANDS_GROUP].values()) == sorted(installed.BUNDLED_COMMANDS)
    assert tuple(groups["gateway.before_open"].values()) == installed.BUNDLED_BEFORE_OPEN
    assert {group: groups[group] for group in BUNDLED_OPENERS} == BUNDLED_OPENERS
    assert groups[plugin_tables.GROUP] == plugin_tables.BUNDLED_TABLES


def test_a_checkout_that_was_never_installed_has_every_command(command, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: ())
    monkeypatch.setattr(installed, "_has_tables", lambda _: True)
    listed = command("--help").stdout
    assert "Buy a generation from a gateway and save it." in listed
    assert command("buy", "--help").stdout.startswith("Usage:")


@pytest.mark.parametrize("place", installed.BUNDLED_COMMANDS)
def test_a_bundled_table_imports_nothing(place):
    package = place.partition(":")[0].replace(".", "/")
    (file,) = ROOT.glob(f"*/{package}/__init__.py")
    text, table = ast.parse(file.read_text()).body
    assert isinstance(text, ast.Expr)
    assert isinstance(table, ast.Assign)
