"""A value of the page that is not read never sells at another price: its plugin is off sale."""

import attrs
import pytest

from gateway.errors import SettingsError
from gateway.plugins.manager import PluginManager
from gateway.settings import Settings
from gateway.settings.page_values import make_readable, read_sealed
from gateway.store.page_settings import StoredSetting, put, with_page_settings
from gateway.store.sqlite.store import SqliteStore
from tests.unit.settings.test_sealed_settings import OTHER, sealed, settings

KEY = {"openai_api_key": "sk-of-the-environment", "gemini_api_key": "AIza-of-the-environment"}
FILE = attrs.evolve(settings(), plugin_values=KEY, sources=dict.fromkeys(KEY, "environment"))


def catalog_of(found: Settings):
    return PluginManager(disabled=found.plugins_disabled).catalog(found)


def start(page: dict[str, str], base: Settings = FILE):
    return make_readable(read_sealed(base, page), catalog_of)


def on_sale(catalog) -> set[str]:
    found = {catalog.find(endpoint.slug).upstream.plugin for endpoint in catalog}
    return found & {"gateway_openai", "gateway_gemini"}


def test_a_bad_value_leaves_the_prices_of_others_right():
    page = sealed(openai_image_price="0.90", gemini_models="gone", contact_email="nobody")
    found, catalog = start(page)
    assert found.page_unread.keys() == {"gemini_models", "contact_email"}
    assert catalog["openai-image"].endpoint.price_units == 900_000
    # It might be sold at another price, or with another model.
    assert on_sale(catalog) == {"gateway_openai"}
    held = next(one for one in catalog.everything() if one.upstream.plugin == "gateway_gemini")
    assert held.held.startswith("GATEWAY_GEMINI_MODELS has no effect, although set on the page (")
    # A live change does not put it on sale.
    catalog.change({})
    assert on_sale(catalog) == {"gateway_openai"}


def test_two_bad_values_of_plugins_leave_the_third_right():
    page = sealed(gemini_models="gone", openai_image_price="cheap", brand_color="#00000")
    found, catalog = start({**page, **sealed(gemini_max_concurrency="3")})
    assert found.page_unread.keys() == page.keys()
    assert found.plugin_values["gemini_max_concurrency"] == "3"
    assert on_sale(catalog) == set()


def test_a_problem_that_names_no_setting_leaves_out_its_cause_only():
    def make(tried: Settings) -> None:
        if "gemini_models" in tried.plugin_values:
            raise SettingsError("This model was retired.")

    found, _ = make_readable(
        read_sealed(settings(), sealed(name="Page", gemini_models="old", brand_color="#000000")),
        make,
    )
    assert found.page_unread == {"gemini_models": "This model was retired."}


@pytest.mark.parametrize("secret", ["", OTHER])
def test_with_a_lost_secret_plugins_with_stored_values_sell_nothing(tmp_path, secret):
    page = sealed(openai_image_price="0.90", name="Page")
    base = attrs.evolve(FILE, settings_secret=secret)
    _, catalog = start(page, base)
    assert on_sale(catalog) == {"gateway_gemini"}
    # Other nodes sell by values that this one does not know.
    shared = attrs.evolve(base, database_url="postgresql://127.0.0.1/x")
    _, catalog = start(page, shared)
    assert on_sale(catalog) == set()
    assert all("GATEWAY_NAME" in one.held for one in catalog.everything()[-1:])


def test_what_file_or_environment_set_is_sold_although_the_page_has_a_value():
    given = {**FILE.sources, "openai_image_price": "environment"}
    base = attrs.evolve(
        FILE,
        settings_secret=OTHER,
        sources=given,
        plugin_values={**KEY, "openai_image_price": "0.50"},
        database_url="postgresql://127.0.0.1/x",
    )
    _, catalog = start(sealed(openai_image_price="0.90"), base)
    assert on_sale(catalog) == {"gateway_openai", "gateway_gemini"}


def test_a_name_that_a_plugin_does_not_declare_for_the_page_has_no_effect():
    page = sealed(admin_password_hash="x", openai_base_url="https://evil.test", name="Page")
    found, catalog = start(page)
    assert found.page_unread.keys() == {"admin_password_hash", "openai_base_url"}
    assert found.plugin_values == KEY
    assert found.name == "Page"
    assert on_sale(catalog) == {"gateway_gemini"}


async def test_stored_values_are_found_without_the_secret(tmp_path, monkeypatch):
    async with SqliteStore(tmp_path / "gateway.db") as store:
        stored = StoredSetting(sealed(openai_image_price="0.90")["openai_image_price"], 1.0)
        await store._write(put, "openai_image_price", stored)
    found = with_page_settings(attrs.evolve(FILE, settings_secret="", data_dir=tmp_path))
    assert "is not set" in found.page_unread["openai_image_price"]
