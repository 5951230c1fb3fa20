"""Third-party plugins in a running gateway: left out with one log line, and listed by `check`."""

import json

import pytest

from tests.conftest import running
from tests.third_party_plugins import KEYED, SELLS

MANIFEST = "/.well-known/agent-manifest.json"


# -- failing plugins are left out, the rest starts


@pytest.mark.parametrize(
    ("source", "message"),
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
    install, lines, settings, source, message
):
    install(source)
    async with running(settings) as gateway:
        answer = await gateway.client.get(MANIFEST)
        slugs = [one["slug"] for one in (await answer.get_json())["availableEndpoints"]]
    assert "document-parser" in slugs
    assert not [slug for slug in slugs if slug.startswith("acme")]
    (line,) = [line for line in lines if line["event"] == "plugin.left_out"]
    assert (line["plugin"], line["source"]) == ("acme_plugin", "gateway-acme 1.2")
    assert message in line["error"]
    assert "\n" not in line["error"]


@pytest.mark.parametrize(
    ("hook", "argument", "message"),
    [
        (
            "register_authorization_verifier",
            "object()",
            "ValueError: object.header_names is no list",
        ),
        ("register_authorization_verifier", "taking('x-payment')", "Payment header x-payment is"),
        ("register_transfer_verifier", "object()", "Hook register_transfer_verifier is registered"),
        ("register_settlers", "'local', object", "Settler local is registered by"),
    ],
)
async def test_a_second_way_to_pay_is_left_out_and_the_shop_sells(
    install, lines, settings, hook, argument, message
):
    taking = "\ndef taking(name):\n    return type('Verifier', (), {'header_names': (name,)})()\n"
    hooked = f"\n@hookimpl\ndef {hook}(register, context):\n    register({argument})\n"
    install(SELLS + taking + hooked)
    async with running(settings) as gateway:
        answer = await gateway.client.get(MANIFEST)
        slugs = [one["slug"] for one in (await answer.get_json())["availableEndpoints"]]
    assert "document-parser" in slugs
    assert "acme-picture" not in slugs  # nothing of it is half there
    (line,) = [line for line in lines if line["event"] == "plugin.left_out"]
    assert line["error"].startswith(message)
    assert (line["plugin"], line["source"]) == ("acme_plugin", "gateway-acme 1.2")


# -- gateway check


def test_check_has_a_row_for_each_provider_on_sale(install, command, chain, monkeypatch):
    health = "    async def health(self):\n        raise AccountProblem('No credit.')\n\n"
    install(
        "from gateway import AccountProblem\n"
        + SELLS.replace("    async def submit", health + "    async def submit")
    )
    monkeypatch.setenv("GATEWAY_RPC_URLS", chain.rpc_url)
    result = command("check", "--json")
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["provider acme"] == {
        "name": "provider acme",
        "ok": False,
        "result": "wrong",
        "found": "AccountProblem: No credit.",
    }
    assert rows["provider documents"]["ok"]
    assert result.exit_code == 1


def test_check_names_a_plugin_that_was_left_out(install, command, chain, monkeypatch):
    install("import nothing_of_this_name")
    monkeypatch.setenv("GATEWAY_RPC_URLS", chain.rpc_url)
    rows = {row["name"]: row for row in json.loads(command("check", "--json").stdout)}
    assert not rows["plugins"]["ok"]
    assert "acme_plugin" in rows["plugins"]["found"]


@pytest.mark.parametrize(
    ("hooked", "message"),
    [
        ("raise SettingsError('GATEWAY_ACME_SERVER is no address.')", "GATEWAY_ACME_SERVER is no"),
        ("register(object())", "not loaded: acme_plugin; `gateway plugins` shows why"),
    ],
)
def test_check_finds_what_is_wrong_with_a_way_to_pay(
    install, command, monkeypatch, hooked, message
):
    hook = f"\n@hookimpl\ndef register_payment_method(register, context):\n    {hooked}\n"
    install("from gateway import SettingsError\n" + KEYED + hook)
    monkeypatch.setenv("GATEWAY_ACME_SERVER", "nowhere")
    monkeypatch.setenv("GATEWAY_RPC_URLS", "http://127.0.0.1:9")
    rows = {row["name"]: row for row in json.loads(command("check", "--json").stdout)}
    assert not rows["plugins"]["ok"]
    assert message in rows["plugins"]["found"]
