"""`gateway plugins` and `gateway endpoints`."""

import json

import pytest

from gateway.errors import SettingsError
from gateway.plugins.manager import PluginManager
from gateway_testing.fakes.chain import FakeChain, context_of
from tests.third_party_plugins import KEYED, SELLS
from tests.unit.plugins.plugin_lists import listed


def test_the_list_names_source_and_endpoints(install, command):
    install(SELLS)
    row = listed(command, "--no-health")
    assert row["from"] == "gateway-acme 1.2"
    assert (row["endpoints"], row["note"]) == ("acme-picture", "")
    assert listed(command, "--no-health", module="gateway_documents")["from"] == "bundled"


def test_the_list_names_the_capability_that_no_plugin_declares(install, command):
    install(SELLS.replace("text-to-image", "text-to-song"))
    row = listed(command, "--no-health")
    assert row["endpoints"] == "acme-picture"
    assert row["note"].startswith("not sold: no plugin declares the capability text-to-song")


@pytest.mark.parametrize(
    ("source", "variables", "note"),
    [
        (KEYED, {}, "off: GATEWAY_ACME_API_KEY is not set"),
        (KEYED, {"GATEWAY_ACME_API_KEY": "k"}, ""),
        (
            KEYED.replace('"Its address."', '"Its address.", switches_on=True'),
            {},
            "off: GATEWAY_ACME_SERVER is not set",
        ),
        (
            KEYED.replace('"Its address."', '"Its address.", switches_on=True').replace(
                'example="k"', "switches_on=True"
            ),
            {},
            "off: GATEWAY_ACME_API_KEY and GATEWAY_ACME_SERVER are not set",
        ),
        (SELLS.replace("    register(", "    (", 1), {}, "off: it registered no endpoint"),
        (
            SELLS.replace("    register(", "    (", 1)
            + "\n\ndef why_off():\n    return 'install: pip install acme[models]'\n",
            {},
            "off: install: pip install acme[models]",
        ),
    ],
    ids=["no key", "a key", "no server", "neither", "for no reason", "for its own reason"],
)
def test_the_list_says_which_setting_would_switch_a_plugin_on(
    install, command, monkeypatch, source, variables, note
):
    install(source)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert listed(command, "--no-health")["note"] == note


def test_the_list_says_what_switches_on_what_is_bundled(command):
    rows = {row["plugin"]: row for row in json.loads(command("plugins", "--json").stdout)}
    assert rows["gateway_sandbox_image"]["note"] == "off: GATEWAY_SANDBOX is not set"
    assert rows["gateway_openai"]["note"] == "off: GATEWAY_OPENAI_API_KEY is not set"
    assert rows["gateway_x402"]["note"] == "accepts signed payments"


def test_the_list_says_what_the_operator_has_switched_off(install, command, tmp_path):
    install(SELLS)
    (tmp_path / "gateway.toml").write_text("[endpoints.acme-picture]\nenabled = false\n")
    row = listed(command)
    assert (row["endpoints"], row["health"]) == ("", "")
    assert row["note"] == "disabled by you: acme-picture"


@pytest.mark.parametrize("name", ["acme_plugin", "acme-plugin"])
def test_a_disabled_plugin_is_not_imported_and_listed_as_disabled(
    install, command, monkeypatch, tmp_path, name
):
    install("raise RuntimeError('imported')")
    monkeypatch.setenv("GATEWAY_PLUGINS_DISABLED", f"gateway_kie, {name}")
    monkeypatch.setenv("GATEWAY_KIE_API_KEY", "k")
    # A disabled plugin's settings stay in place.
    text = 'acme_api_key = "k"\n[endpoints.acme-picture]\nprice = "0.05"\n'
    (tmp_path / "gateway.toml").write_text(text)
    row = listed(command, "--no-health")
    assert (row["endpoints"], row["health"]) == ("", "")
    assert row["note"] == "disabled by GATEWAY_PLUGINS_DISABLED"
    assert listed(command, "--no-health", module="gateway_kie")["endpoints"] == ""
    assert not any(
        "kie" in row["slug"] for row in json.loads(command("endpoints", "--json").stdout)
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [("gateway_opnai", "Did you mean gateway_openai?"), ("zzz", "Installed are gateway_x402, ")],
)
def test_a_plugin_that_is_not_installed_cannot_be_disabled(command, monkeypatch, name, hint):
    monkeypatch.setenv("GATEWAY_PLUGINS_DISABLED", name)
    result = command("plugins", "--no-health")
    assert result.exit_code == 1
    sentence = " ".join(result.output.split())
    assert f"GATEWAY_PLUGINS_DISABLED names {name}, but no plugin has that name. {hint}" in sentence


def test_nobody_sells_without_x402_whatever_else_is_on(tmp_path):
    manager = PluginManager(disabled=("gateway_x402",))
    context = context_of(FakeChain(), tmp_path, {"mpp_enabled": True})
    with pytest.raises(SettingsError, match="take gateway_x402 out of GATEWAY_PLUGINS_DISABLED"):
        manager.ways_to_pay(context)[0]


def test_the_list_says_why_a_plugin_was_left_out(install, command):
    install("import nothing_of_this_name")
    note = listed(command)["note"]
    assert note == "not loaded: ModuleNotFoundError: No module named 'nothing_of_this_name'"


@pytest.mark.parametrize(
    ("health", "shown", "note"),
    [
        ("return", "ok", ""),
        ("raise AccountProblem('No credit.')", "wrong", "AccountProblem: No credit."),
        ("raise OSError('down')", "wrong", "OSError: down"),
    ],
)
def test_the_list_asks_providers_how_they_are(install, command, health, shown, note):
    method = f"    async def health(self):\n        {health}\n\n    async def submit"
    install("from gateway import AccountProblem\n" + SELLS.replace("    async def submit", method))
    row = listed(command)
    assert (row["health"], row["note"]) == (shown, note)
    assert listed(command, "--no-health")["health"] == "not asked"


def test_the_list_tells_what_a_provider_notes_of_itself(install, command):
    install(SELLS.replace('    name = "acme"', '    name = "acme"\n    notes = ("No OCR.",)'))
    row = listed(command)
    assert (row["health"], row["note"]) == ("no check", "No OCR.")


def test_the_table_fits_a_terminal_and_hides_keys(install, command, monkeypatch):
    install(KEYED)
    monkeypatch.setenv("GATEWAY_ACME_API_KEY", "MARKER-KEY")
    monkeypatch.setenv("COLUMNS", "100")
    output = command("plugins", "--no-health").stdout
    assert "MARKER" not in output
    assert "…" not in output
    (line,) = [line for line in output.splitlines() if line.startswith("acme_plugin")]
    assert line.split() == ["acme_plugin", "gateway-acme", "1.2", "no", "check", "acme-picture"]


def test_endpoints_are_listed_with_every_price(install, command, monkeypatch):
    steps = "price_steps=(PriceStep(price_units=120000, resolution='4K', min_pages=2),)"
    more = f"file_extensions=('.pdf',), resolution=Choice(values=('4K',)), {steps}"
    source = SELLS.replace('endpoint("acme-picture")', f'endpoint("acme-picture", {more})')
    monkeypatch.setenv("COLUMNS", "120")
    install("from gateway import Choice, PriceStep\n" + source)
    rows = {row["slug"]: row for row in json.loads(command("endpoints", "--json").stdout)}
    row = rows["acme-picture"]
    assert (row["price"], row["other prices"]) == ("0.02", ["4K 2 pages: 0.12"])
    assert rows["document-parser"]["other prices"] == []
    assert "4K 2 pages: 0.12" in command("endpoints").stdout
