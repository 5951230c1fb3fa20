"""A third party's plugin: its source, and fixtures that install it and run the command."""

import importlib
import sys

import pytest
import structlog
from click.testing import CliRunner

from gateway.cli import main
from tests.conftest import WALLET

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
    """Install a third party's distribution with one plugin, for one test."""
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
    """`gateway …` in an empty folder, with the settings that every gateway needs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GATEWAY_WALLET", WALLET)
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0x" + "1" * 64)

    def run(*arguments: str):
        return CliRunner().invoke(main, arguments, catch_exceptions=False)

    return run
