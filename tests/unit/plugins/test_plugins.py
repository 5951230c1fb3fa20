"""Third-party plugins: loaded, refused with a sentence, listed with offers and problems."""

import sys

import pytest
import structlog

from gateway import Settings, hookimpl
from gateway.errors import SettingsError
from gateway.plugins.installed import OPTIONAL_PARTS, find_section, find_sections
from gateway.plugins.manager import PluginManager
from gateway.settings import EndpointOverride, names_of
from tests.conftest import WALLET
from tests.third_party_plugins import KEYED, SELLS
from tests.unit.plugins.plugin_lists import catalog_of, left_out


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
