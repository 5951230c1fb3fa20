"""Third-party plugins: loaded, refused with a sentence, listed with offers and problems."""

import json
import sys

import attrs
import pytest
import structlog

from gateway import Choice, PriceStep, Settings, hookimpl
from gateway.domain import Traits
from gateway.errors import SettingsError
from gateway.plugins.installed import OPTIONAL_PARTS, find_section, find_sections
from gateway.plugins.manager import PluginManager
from gateway.plugins.registration import endpoint_offer, section_offer
from gateway.settings import EndpointOverride, names_of, setting
from gateway_testing.facts import ENDPOINT
from gateway_testing.fakes.chain import FakeChain, context_of
from tests.conftest import WALLET, ScriptedProvider
from tests.third_party_plugins import KEYED, SELLS


def listed(command, *arguments: str, module: str = "acme_plugin") -> dict:
    result = command("plugins", "--json", *arguments)
    assert result.exit_code == 0, result.output
    (row,) = [row for row in json.loads(result.stdout) if row["plugin"] == module]
    return row


def left_out(manager: PluginManager) -> dict[str, str]:
    return {plugin.name: plugin.problem for plugin in manager.loaded if plugin.problem}


def catalog_of(manager: PluginManager, **settings) -> set[str]:
    catalog = manager.catalog(Settings(wallet=WALLET, **settings))
    return {one.endpoint.slug for one in catalog.everything()}


def test_a_wrong_value_of_a_plugins_setting_stops_the_start(install):
    install(
        KEYED.replace("api_key and", "api_key or").replace(
            'server: str = setting("",', "server: int = setting(0,"
        )
    )
    with pytest.raises(SettingsError, match="GATEWAY_ACME_SERVER has a value of the wrong kind"):
        catalog_of(PluginManager(), plugin_values={"acme_server": "x"})


def test_a_setting_of_a_plugin_that_was_left_out_does_not_stop_the_start(install):
    install("import nothing_of_this_name")
    in_file = {"unknown_in_file": ("acme_api_key",), "plugin_values": {"acme_api_key": "k"}}
    assert "document-parser" in catalog_of(PluginManager(), **in_file)
    sys.modules.pop("acme_plugin", None)


def test_a_setting_that_nobody_knows_stops_the_start(install):
    install(KEYED)
    with pytest.raises(SettingsError, match=r"acme_api_kye.*Did you mean acme_api_key"):
        catalog_of(PluginManager(), unknown_in_file=("acme_api_kye",))


@pytest.mark.parametrize("order", [1, -1], ids=["installed first", "installed last"])
def test_who_comes_second_by_name_with_a_slug_is_left_out_with_all_its_endpoints(install, order):
    more = SELLS + "    register(endpoint('other-picture'), Provider())\n"
    both = [(SELLS, "acme_plugin", "gateway-acme"), (more, "other_plugin", "gateway-other")]
    for source, module, dist in both[::order]:
        install(source, module=module, dist=dist)
    manager = PluginManager()
    slugs = catalog_of(manager)
    assert {"acme-picture", "document-parser"} <= slugs
    assert "other-picture" not in slugs
    assert left_out(manager) == {
        "other_plugin": "Slug acme-picture is registered by acme_plugin (gateway-acme 1.2) and by "
        "other_plugin (gateway-other 1.2). Uninstall one of the two."
    }


def test_a_slug_of_a_bundled_plugin_stays_its_own(install):
    install(SELLS.replace("acme-picture", "document-parser"), module="a_plugin")
    manager = PluginManager()
    catalog = manager.catalog(Settings(wallet=WALLET))
    assert catalog["document-parser"].upstream.plugin == "gateway_documents"
    assert list(left_out(manager)) == ["a_plugin"]


@pytest.mark.parametrize("wish", ["trylast", "tryfirst"])
@pytest.mark.parametrize("module", ["a_plugin", "z_plugin"])
def test_a_plugin_that_asks_to_be_called_out_of_turn_is_not(install, wish, module):
    source = SELLS.replace("acme-picture", "document-parser").replace(
        "@hookimpl", f"@hookimpl({wish}=True)"
    )
    install(source, module=module)
    manager = PluginManager()
    catalog = manager.catalog(Settings(wallet=WALLET))
    assert catalog["document-parser"].upstream.plugin == "gateway_documents"
    assert list(left_out(manager)) == [module]


def test_a_price_of_the_operators_for_a_plugin_that_is_left_out_does_not_stop_the_start(install):
    install(SELLS)
    more = SELLS + "    register(endpoint('other-picture'), Provider())\n"
    install(more, module="other_plugin", dist="gateway-other")
    changed = {"other-picture": EndpointOverride(price="0.05")}
    assert "acme-picture" in catalog_of(PluginManager(), endpoints=changed)


def test_who_comes_second_with_a_prefix_of_settings_is_left_out(install):
    install(KEYED)
    install(KEYED.replace("acme-picture", "b"), module="other_plugin", dist="gateway-other")
    manager = PluginManager()
    assert [one.plugin for one in manager.sections() if one.prefix == "acme"] == ["acme_plugin"]
    assert "have settings named GATEWAY_ACME_" in left_out(manager)["other_plugin"]
    assert "other_plugin" not in [one.plugin for one in manager.sections()]


def test_a_third_partys_settings_need_a_prefix(install):
    install(KEYED.replace('"acme", Section', '"", Section').replace("server", "place"))
    manager = PluginManager()
    manager.sections()
    assert "without a prefix" in left_out(manager)["acme_plugin"]


def test_settings_of_a_disabled_part_are_one_warning_and_stay_known(install):
    given = {"alarm_gas": "wrong", "webhooks": "off", "mpc": "false"}
    settings = Settings(plugin_values=given, plugins_disabled=("gateway_operator", "gateway_mcp"))
    with structlog.testing.capture_logs() as logs:
        PluginManager(disabled=settings.plugins_disabled).catalog(settings)
    assert [(log["event"], log.get("plugin"), log.get("names")) for log in logs] == [
        ("setting.of_disabled_plugin", "gateway_operator", ["GATEWAY_ALARM_GAS"]),
        ("setting.unknown", None, None),
    ]
    assert logs[1]["near"] == "GATEWAY_MCP"


def test_a_wrong_value_of_an_optional_part_is_refused_before_anything_opens():
    settings = Settings(plugin_values={"alarm_gas": "20/200"})
    for check in (find_sections, PluginManager().catalog):
        with pytest.raises(SettingsError, match="GATEWAY_ALARM_GAS is not right"):
            check(settings)


@pytest.mark.parametrize("plugin", OPTIONAL_PARTS)
def test_the_settings_of_a_disabled_part_are_found_without_the_part(plugin):
    registered = [one for one in PluginManager().sections() if one.plugin == plugin]
    found = find_section(plugin, disabled=True)
    expected = [] if found is None else [names_of("", found)]
    assert [one.fields for one in registered] == expected


def test_who_comes_second_with_a_settings_name_is_left_out(install):
    install(KEYED)
    install(
        KEYED.replace("acme-picture", "b")
        .replace('"acme", Section', '"acme_api", Section')
        .replace("    api_key: str", "    key: str"),
        module="other_plugin",
        dist="gateway-other",
    )
    manager = PluginManager()
    manager.sections()
    assert "have a setting GATEWAY_ACME_API_KEY" in left_out(manager)["other_plugin"]


def test_a_plugin_that_wants_settings_of_an_operator_who_set_none_is_left_out(install):
    wants = "    raise SettingsError('GATEWAY_ACME_API_KEY is missing.')\n"
    install("from gateway import SettingsError\n" + KEYED + wants)
    manager = PluginManager()
    assert "document-parser" in catalog_of(manager)
    assert left_out(manager) == {"acme_plugin": "GATEWAY_ACME_API_KEY is missing."}
    with pytest.raises(SettingsError, match="GATEWAY_ACME_API_KEY is missing"):
        catalog_of(PluginManager(), plugin_values={"acme_server": "here"})


def test_the_log_shows_the_plugins_own_line(install, lines):
    install(SELLS + "    register(endpoint('No Url'), Provider())\n")
    catalog_of(PluginManager())
    (line,) = [line for line in lines if line["event"] == "plugin.left_out"]
    number = len(SELLS.splitlines()) + 1
    assert line["at"].endswith(f"acme_plugin.py:{number}")


def test_the_log_shows_the_line_that_cannot_be_read(install, lines):
    install("x = 1\ndef broken(:\n")
    PluginManager()
    (line,) = [line for line in lines if line["event"] == "plugin.left_out"]
    assert line["at"].endswith("acme_plugin.py:2")


def test_a_plugin_given_by_a_developer_fails_loudly():
    class Broken:
        @hookimpl
        def register_endpoints(self, register):
            raise KeyError("x")

    with pytest.raises(KeyError):
        catalog_of(PluginManager([Broken()]))


# -- allowed registrations

_EDITING = {
    "capability": "image-editing",
    "required_fields": ("prompt", "fileBase64", "fileName"),
    "file_extensions": (".png", ".webp"),
}


_EXTRACTION = {"capability": "document-extraction", "file_extensions": (".pdf",)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slug": "a/b"}, "a slug is"),
        ({"slug": ""}, "a slug is"),
        ({"slug": "a" * 101}, "a slug is"),
        ({"title": " "}, "title is empty"),
        ({"model": ""}, "model is empty"),
        ({"capability": "Text to image"}, "capability 'Text to image' is not spelled like"),
        ({"price_units": 0.02}, "price_units 0.02 is no whole number"),
        ({"price_steps": (PriceStep(price_units=1),)}, "neither a resolution nor min_pages"),
        ({"price_steps": (PriceStep(price_units=1, resolution="8K"),)}, "resolution '8K'"),
        ({"price_steps": (PriceStep(price_units=1, min_pages=2),)}, "no file is taken"),
        (
            {
                "resolution": Choice(values=("1K", "2K"), default="1K"),
                "price_steps": (PriceStep(price_units=1, resolution="1K"),),
            },
            "for the default resolution, whose price is price_units",
        ),
        ({"price_per_page": 0}, "price_per_page 0 is not more than 0"),
        ({"price_per_page": 0.01}, "price_per_page 0.01 is not more than 0"),
        ({"price_per_page": 1}, "no file is taken"),
        ({"price_per_page": 1, "file_extensions": (".pdf",)}, "needs max_pages"),
        (
            {
                "price_per_page": 1,
                "max_pages": 9,
                "file_extensions": (".pdf",),
                "price_steps": (PriceStep(price_units=1, min_pages=2),),
            },
            "choose one of the two",
        ),
        (_EDITING | {"price_per_page": 1}, "a picture has no pages"),
        ({"required_fields": ("prompts",)}, "required field 'prompts'"),
        ({"required_fields": ("fileBase64",)}, "file_extensions is empty"),
        ({"capability": "image-editing", "required_fields": ()}, "needs prompt and fileBase64"),
        ({"capability": "image-editing"}, "needs fileBase64 and fileName"),
        (_EDITING | {"required_fields": ("fileName",)}, "needs prompt: name it in required_fields"),
        (_EDITING | {"file_extensions": (".jpg",)}, "file_extensions are .png and any of"),
        (_EDITING | {"file_extensions": (".png", ".gif")}, "file_extensions are .png and any of"),
        (_EDITING | {"max_pages": 3}, "a picture has no pages"),
        ({"capability": "document-extraction"}, "needs fileBase64 and fileName"),
        (_EXTRACTION | {"required_fields": ()}, "document-extraction needs prompt: name it"),
        ({"file_extensions": ("pdf",)}, "file extension 'pdf'"),
        ({"file_extensions": (".PDF",)}, "file extension '.PDF'"),
        ({"aspect_ratio": Choice(values=("2:1",))}, "aspect_ratio '2:1'"),
        ({"output_format": Choice(values=("jpeg",))}, "output_format 'jpeg'"),
        ({"max_prompt_chars": 0}, "max_prompt_chars"),
        ({"max_prompt_chars": 10_001}, "max_prompt_chars"),
        ({"max_pages": 0}, "max_pages"),
        ({"timeout_s": 0.0}, "timeout_s"),
    ],
)
def test_a_wrong_endpoint_is_one_sentence_with_its_slug(changes, message):
    endpoint = attrs.evolve(ENDPOINT, **changes)
    with pytest.raises(ValueError) as refused:
        endpoint_offer(endpoint, ScriptedProvider())
    assert str(refused.value).startswith(f"endpoint {endpoint.slug!r}: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "has no name"),
        ({"submit": None}, "has no method submit"),
        ({"submit": lambda self, request, job: None}, "submit is not an `async def`"),
        ({"health": lambda self: None}, "health is not an `async def`"),
        ({"traits": {"max_concurrency": 1}}, "traits is no gateway.Traits"),
        ({"traits": Traits(max_concurrency=0)}, "traits.max_concurrency is no whole number"),
        ({"traits": Traits(max_concurrency=-1)}, "traits.max_concurrency is no whole number"),
        ({"traits": Traits(max_concurrency="4")}, "traits.max_concurrency is no whole number"),
        ({"traits": Traits(submits_per_minute=0)}, "traits.submits_per_minute is no whole"),
        ({"traits": Traits(submits_per_minute=-1)}, "traits.submits_per_minute is no whole"),
        ({"traits": Traits(submits_per_minute=0.5)}, "traits.submits_per_minute is no whole"),
    ],
)
def test_a_wrong_provider_is_one_sentence_with_the_slug(changes, message):
    provider = type("Wrong", (ScriptedProvider,), changes)()
    with pytest.raises(ValueError) as refused:
        endpoint_offer(ENDPOINT, provider)
    assert ENDPOINT.slug in str(refused.value)
    assert message in str(refused.value)


def test_a_right_offer_is_taken():
    provider = type("Right", (ScriptedProvider,), {"traits": Traits(max_concurrency=1)})()
    assert endpoint_offer(ENDPOINT, provider) == (ENDPOINT.slug, (ENDPOINT, provider))


@pytest.mark.parametrize(
    ("prefix", "fields", "message"),
    [
        ("Acme", {}, "a prefix is"),
        ("rpc", {"urls": setting("", "About.")}, "rpc_urls is a setting of the gateway itself"),
        ("acme", {"key": attrs.field(default="")}, "key is not made with gateway.setting"),
    ],
)
def test_a_wrong_section_is_one_sentence(prefix, fields, message):
    with pytest.raises(ValueError, match=message):
        section_offer(prefix, attrs.make_class("Section", fields, frozen=True))


# -- the list


def test_the_list_names_source_and_endpoints(install, command):
    install(SELLS)
    row = listed(command, "--no-health")
    assert row["from"] == "gateway-acme 1.2"
    assert (row["endpoints"], row["note"]) == ("acme-picture", "")
    assert listed(command, "--no-health", module="gateway_documents")["from"] == "bundled"


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
    ],
    ids=["no key", "a key", "no server", "neither", "for no reason"],
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
    assert (row["health"], row["note"]) == ("not told", "No OCR.")


def test_the_table_fits_a_terminal_and_hides_keys(install, command, monkeypatch):
    install(KEYED)
    monkeypatch.setenv("GATEWAY_ACME_API_KEY", "MARKER-KEY")
    monkeypatch.setenv("COLUMNS", "100")
    output = command("plugins", "--no-health").stdout
    assert "MARKER" not in output
    assert "…" not in output
    (line,) = [line for line in output.splitlines() if line.startswith("acme_plugin")]
    assert line.split() == ["acme_plugin", "gateway-acme", "1.2", "not", "told", "acme-picture"]


# -- gateway endpoints


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
