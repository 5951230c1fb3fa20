"""A plugin whose registration fails leaves nothing behind, in whichever registry and hook."""

import hashlib
from pathlib import Path

import attrs
import pytest
import structlog

from gateway import Settings
from gateway.errors import SettingsError
from gateway.plugins import hookspecs
from gateway.plugins.manager import PluginManager
from gateway_testing.fakes.chain import FakeChain, context_of
from tests.conftest import WALLET
from tests.third_party_plugins import SELLS
from tests.unit.plugins.plugin_lists import left_out

# Each hook registers something, and then fails if it is the one that `fails` names.
EVERYTHING = """
import attrs
from gateway import Capability, InSandbox, ResultKind, setting

FAILS = ""

def end(hook):
    if hook == FAILS:
        raise RuntimeError("it fails")

@attrs.frozen(kw_only=True)
class Section:
    server: str = setting("", "Its address.")

class Way:
    name = "acmepay"
    header_names = ("X-ACME",)
    def challenge(self, *_): ...
    def read(self, *_): ...
    def receipt_headers(self, *_): ...
    async def check(self, *_): ...
    async def settle(self, *_): ...

class Signed(Way):
    name = ""
    header_names = ("X-ACME-SIGNED",)

@hookimpl
def register_settings(register):
    register("acme", Section)
    end("register_settings")

@hookimpl
def register_capabilities(register):
    song = ResultKind(name="song", media_types={"audio/x-song": "song"})
    register(Capability(name="text-to-song", output_formats=("song",), results=(song,)))
    end("register_capabilities")

@hookimpl
def register_settlers(register):
    register("acme", Way)
    end("register_settlers")

@hookimpl
def register_spans(register):
    register(open)
    end("register_spans")

@hookimpl
def register_authorization_verifier(register):
    register(Signed())
    end("register_authorization_verifier")

@hookimpl
def register_payment_method(register):
    register(Way())
    end("register_payment_method")

@hookimpl
def register_transfer_verifier(register):
    register(Way())
    end("register_transfer_verifier")

@hookimpl
def register_check_rows(register):
    register("acme", end)
    end("register_check_rows")

@hookimpl
def gateway_notify(alarm):
    ...
"""
ENDPOINTS = SELLS.replace(
    '    register(endpoint("acme-picture"), Provider())',
    """
    register(endpoint("acme-picture"), Provider())
    register(endpoint("acme-song", capability="text-to-song"), Provider())
    end("register_endpoints")
""",
)
# Another plugin sells by this one's capability; by name it comes before or after it.
OTHER = SELLS.replace("text-to-image", "text-to-song").replace("acme-picture", "other-song")
KEY = "0x" + hashlib.sha256(b"settles in a test").hexdigest()
HOOKS = [
    "register_settings",
    "register_capabilities",
    "register_endpoints",
    "register_settlers",
    "register_spans",
    "register_authorization_verifier",
    "register_payment_method",
    "register_transfer_verifier",
]


def source(fails: str = "", **changes: str) -> str:
    made = (ENDPOINTS + EVERYTHING).replace('FAILS = ""', f"FAILS = {fails!r}")
    for old, new in changes.items():
        made = made.replace(old, new)
    return made


def start(
    settler: str = "local", disabled: tuple[str, ...] = ()
) -> tuple[PluginManager, dict[str, str]]:
    """Call every hook as a start does; return what is registered, by registry."""
    # Its verifier of transfers would be the first.
    off = ("gateway_usdc_direct", *disabled)
    settings = Settings(wallet=WALLET, settlement_key=KEY, settlement=settler, plugins_disabled=off)
    manager = PluginManager(disabled=off)
    catalog = manager.catalog(settings)
    context = attrs.evolve(context_of(FakeChain(), Path(), {}), settings=settings)
    manager.settler(context)
    spans = manager.spans(settings)
    verifiers, methods = manager.ways_to_pay(context)
    try:
        transfers = type(manager.transfer_verifier(context)).__module__
    except SettingsError as error:
        transfers = str(error)
    other = catalog.find("other-song")
    return manager, {
        "hooks": str(manager.modules() if manager._manager.has_plugin("acme_plugin") else ""),
        "settings": str([one.prefix for one in manager.sections()]),
        "capabilities": str(list(catalog.capabilities)),
        "formats": str(catalog.output_formats),
        "media types": catalog.media_types.headers_of("t/0.song")["Content-Type"],
        "endpoints": str(catalog.slugs()),
        "configured": str(list(catalog._configured)),
        "upstreams": str([one.plugin for one in catalog.upstreams()]),
        "other endpoint": str(bool(other and other.sells_now)),
        "spans": str(spans.openers),
        "ways": str([type(one).__module__ for one in (*verifiers, *methods)]),
        "transfers": transfers,
        "notifiers": str(list(manager.notifiers())),
        "check rows": str(list(manager.check_rows(settings))),
    }


@pytest.fixture(autouse=True)
def _quiet():
    with structlog.testing.capture_logs():
        yield


@pytest.mark.parametrize("other", ["a_plugin", "z_plugin"])
@pytest.mark.parametrize("hook", HOOKS)
def test_what_it_registered_before_is_taken_back_everywhere(install, monkeypatch, hook, other):
    install(OTHER, module=other, dist="gateway-other")
    install(source())
    _, before = start(disabled=("acme_plugin",))
    manager, whole = start()
    assert left_out(manager) == {}
    # Every registry has something of the whole plugin.
    assert [name for name in before if before[name] == whole[name]] == []
    monkeypatch.setattr("acme_plugin.FAILS", hook)
    manager, after = start()
    assert list(left_out(manager)) == ["acme_plugin"]
    assert after == before


@pytest.mark.parametrize("hook", ["register_spans", "register_payment_method"])
def test_a_settler_in_use_stops_the_start(install, hook):
    install(source(hook).replace('register("acme", Way)', 'register("acme", lambda: Way())'))
    with pytest.raises(SettingsError, match="GATEWAY_SETTLEMENT names a settler of acme_plugin"):
        start("acme")


def test_a_claim_of_a_plugin_that_is_gone_clashes_with_none(install):
    # The first one has the header, and fails in a later hook.
    install(source("register_payment_method"))
    way = source().split("class Way:")[1].split("@hookimpl")[0].replace("X-ACME-SIGNED", "X-OTHER")
    install(
        f"from gateway import hookimpl\nclass Way:{way.replace('X-ACME', 'X-ACME-SIGNED')}\n"
        "@hookimpl\ndef register_payment_method(register):\n    register(Way())\n",
        module="other_plugin",
        dist="gateway-other",
    )
    manager, found = start()
    assert list(left_out(manager)) == ["acme_plugin"]
    assert "other_plugin" in found["ways"]


def test_every_hook_of_a_start_is_tried():
    # Parts are left out alone; rows of `gateway check` and alarms are made by no start.
    others = {"register_parts", "register_check_rows", "gateway_notify"}
    named = {name for name in vars(hookspecs) if name.startswith(("register_", "gateway_notify"))}
    assert named - others == set(HOOKS)
