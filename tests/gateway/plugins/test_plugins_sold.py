"""Other people's plugins in a running gateway: left out with one line, and named by `check`."""

import importlib
import json
import sys

import pytest
import structlog
from click.testing import CliRunner

from gateway.cli import main
from tests.conftest import WALLET, running

MANIFEST = "/.well-known/agent-manifest.json"
SELLS = """
from gateway import Endpoint, Result, hookimpl, usdc

class Provider:
    name = "acme"

    async def submit(self, request, job):
        return Result(text="x")

def endpoint(slug, **changes):
    facts = dict(slug=slug, title="T", description="D", model="m", provider="acme",
                 capability="text-to-image", price_units=usdc("0.02"))
    return Endpoint(**(facts | changes))

@hookimpl
def register_endpoints(register, settings):
    register(endpoint("acme-picture"), Provider())
"""
KEYED = (
    """
import attrs
from gateway import hookimpl, secret, setting

@attrs.frozen(kw_only=True)
class Section:
    api_key: str = secret("The key.", example="k")
    server: str = setting("", "Its address.")

@hookimpl
def register_settings(register):
    register("acme", Section)

"""
    + SELLS
).replace(
    "    register(endpoint", '    settings.section("acme", Section).api_key and register(endpoint'
)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a third party's distribution with one plugin, for the time of a test."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    modules = []

    def installed(source: str, *, module: str = "acme_plugin", dist: str = "gateway-acme") -> None:
        (site / f"{module}.py").write_text(source)
        about = site / f"{dist.replace('-', '_')}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.2\n")
        (about / "entry_points.txt").write_text(f"[gateway]\n{module} = {module}\n")
        modules.append(module)
        importlib.invalidate_caches()

    yield installed
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def lines():
    with structlog.testing.capture_logs() as found:
        yield found


@pytest.fixture
def command(tmp_path, monkeypatch):
    """`gateway …` in an empty folder, with the settings that every gateway has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GATEWAY_WALLET", WALLET)
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0x" + "1" * 64)

    def run(*arguments: str):
        return CliRunner().invoke(main, arguments, catch_exceptions=False)

    return run


# -- what fails is left out, the rest starts


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this"),
        ("def broken(:", "SyntaxError: "),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (SELLS.replace("endpoints(register", "endpoint(register"), "Did you mean register_endp"),
        (SELLS.replace("(register, settings)", "(register, options)"), "options"),
        (SELLS + "    raise KeyError('x')\n", "KeyError: 'x'"),
        (SELLS + "    register(endpoint('acme-picture'), Provider())\n", "registered twice"),
        (SELLS + "    register(endpoint('No Url'), Provider())\n", "endpoint 'No Url': a slug is"),
        (SELLS + "    register('acme', Provider())\n", "TypeError: "),
        (SELLS + "    register(endpoint('b'), object())\n", "endpoint 'b': its provider object"),
        (KEYED.replace('"acme", Section)\n', '"acme", dict)\n', 1), "is no attrs class"),
        (SELLS + "\n@hookimpl\ndef register_settings():\n    raise OSError('x')\n", "OSError: x"),
    ],
    ids=[
        "import",
        "syntax",
        "exit",
        "hook",
        "argument",
        "raises",
        "twice",
        "slug",
        "no endpoint",
        "no provider",
        "settings",
        "settings raise",
    ],
)
async def test_a_plugin_that_fails_is_left_out_with_one_line(
    install, lines, settings, source, said
):
    install(source)
    async with running(settings) as gateway:
        answer = await gateway.client.get(MANIFEST)
        slugs = [one["slug"] for one in (await answer.get_json())["availableEndpoints"]]
    assert "document-parser" in slugs
    assert not [slug for slug in slugs if slug.startswith("acme")]
    (line,) = [line for line in lines if line["event"] == "plugin.left_out"]
    assert (line["plugin"], line["source"]) == ("acme_plugin", "gateway-acme 1.2")
    assert said in line["error"]
    assert "\n" not in line["error"]


@pytest.mark.parametrize(
    ("hook", "argument", "said"),
    [
        ("register_authorization_verifier", "object()", "Hook register_authorization_verifier is"),
        ("register_transfer_verifier", "object()", "Hook register_transfer_verifier is registered"),
        ("register_settlers", "'local', object", "Settler local is registered by"),
    ],
)
async def test_a_second_way_to_pay_is_left_out_and_the_shop_sells(
    install, lines, settings, hook, argument, said
):
    install(SELLS + f"\n@hookimpl\ndef {hook}(register, context):\n    register({argument})\n")
    async with running(settings) as gateway:
        answer = await gateway.client.get(MANIFEST)
        slugs = [one["slug"] for one in (await answer.get_json())["availableEndpoints"]]
    assert "document-parser" in slugs
    assert "acme-picture" not in slugs  # nothing of it is half there
    (line,) = [line for line in lines if line["event"] == "plugin.left_out"]
    assert line["error"].startswith(said)
    assert "acme_plugin (gateway-acme 1.2)" in line["error"]


# -- gateway check


def test_check_has_a_row_for_each_provider_on_sale(install, command, chain, monkeypatch):
    health = "    async def health(self):\n        raise AccountProblem('No credit.')\n\n"
    install(
        "from gateway import AccountProblem\n"
        + SELLS.replace("    async def submit", health + "    async def submit")
    )
    monkeypatch.setenv("GATEWAY_RPC_URLS", chain.rpc_url)
    said = command("check", "--json")
    rows = {row["name"]: row for row in json.loads(said.stdout)}
    assert rows["provider acme"] == {
        "name": "provider acme",
        "ok": False,
        "found": "AccountProblem: No credit.",
    }
    assert rows["provider documents"]["ok"]
    assert said.exit_code == 1


def test_check_names_a_plugin_that_was_left_out(install, command, chain, monkeypatch):
    install("import nothing_of_this_name")
    monkeypatch.setenv("GATEWAY_RPC_URLS", chain.rpc_url)
    rows = {row["name"]: row for row in json.loads(command("check", "--json").stdout)}
    assert not rows["plugins"]["ok"]
    assert "acme_plugin" in rows["plugins"]["found"]
