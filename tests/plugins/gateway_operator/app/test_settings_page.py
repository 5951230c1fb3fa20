"""The page Settings: values are sealed, checked, audited, and in effect after a restart."""

import json

import attrs
import pytest

from gateway.settings import SectionOffer, Settings, setting
from gateway.settings.page import seal
from gateway.store.page_settings import StoredSetting, find_all, put, with_page_settings
from gateway_operator.desk.settings_list import CORE, find_row, list_groups, read_groups
from gateway_operator.state import Operator
from tests.conftest import running
from tests.plugins.gateway_operator.app.operator import (
    RIGHT,
    actions_of,
    log_in,
    post,
    text_of,
)

PAGE = "/admin/settings"
SECRET = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"
KEY = "AIza-MARKER-4711-of-the-vendor"
GEMINI = f"{PAGE}/gemini_api_key"


@pytest.fixture
def settings(settings):
    return attrs.evolve(settings, settings_secret=SECRET)


@pytest.fixture
async def gateway(gateway):
    await log_in(gateway)
    return gateway


def desk_of(gateway):
    return gateway.services.find(Operator).desk


async def row_of(gateway, name: str):
    return find_row(await read_groups(desk_of(gateway)), name)


async def set_key(gateway, text: str = KEY, **more):
    return await post(gateway, GEMINI, secret_value=text, **more)


async def test_a_vendors_key_is_stored_sealed_and_sells_after_a_restart(
    settings, provider, gateway
):
    page = await (await gateway.client.get(GEMINI)).get_data(as_text=True)
    assert 'type="password"' in page
    answer = await set_key(gateway, request="one", seen="", reason="new account")
    assert answer.status_code == 303, await text_of(answer)
    row = await row_of(gateway, "gemini_api_key")
    assert (row.value, row.source, row.is_pending) == ("not set", "default", True)
    text = await text_of(await gateway.client.get(PAGE))
    assert "A restart is due: 1 setting changed. No sale" in text
    assert "In effect after a restart: another value" in text
    assert "A restart is due: 1 setting changed" in await text_of(
        await gateway.client.get("/admin")
    )
    (action,) = await actions_of(gateway, "setting.set")
    assert (action.subject, action.reason) == ("GATEWAY_GEMINI_API_KEY", "new account")
    assert KEY not in str(action)
    # The next start reads it.
    started = with_page_settings(settings)
    async with running(started, provider) as restarted:
        assert "gemini-3-pro-image" in restarted.services.catalog.slugs()
        await log_in(restarted)
        row = await row_of(restarted, "gemini_api_key")
        assert (row.value, row.source, row.is_pending) == ("set", "page", False)
        for path in (PAGE, GEMINI, f"{PAGE}?all=1", "/admin/system", "/admin/system/actions"):
            assert KEY not in await (await restarted.client.get(path)).get_data(as_text=True), path
        system = await (await restarted.client.get("/admin/api/v1/system")).get_json()
        assert KEY not in json.dumps(system)
        assert "A restart is due" not in await text_of(await restarted.client.get("/admin"))


async def test_no_file_of_the_database_holds_the_key(gateway, settings):
    await set_key(gateway)
    assert (await row_of(gateway, "gemini_api_key")).stored_at is not None
    files = [one for one in settings.data_dir.rglob("*") if one.is_file()]
    assert files
    for file in files:
        assert KEY.encode() not in file.read_bytes(), file
        assert SECRET.encode() not in file.read_bytes(), file


async def test_it_asks_for_the_password_and_does_not_repeat_the_key(gateway, clock):
    clock.offset_s += 601
    assert (await gateway.client.get(GEMINI)).status_code == 403
    answer = await set_key(gateway)
    assert answer.status_code == 403
    assert KEY not in await answer.get_data(as_text=True)
    assert await gateway.services.store.read(find_all) == {}
    # The repeated form lacks the key, and so leads back to it.
    answer = await post(gateway, GEMINI, password=RIGHT)
    assert answer.status_code == 400
    assert "Enter a value" in await text_of(answer)
    assert (await set_key(gateway)).status_code == 303


async def test_only_the_gateways_own_pages_and_sessions_may(gateway):
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    for path in (GEMINI, f"{GEMINI}/clear"):
        assert (await post(gateway, path, headers=foreign, secret_value=KEY)).status_code == 403
    gateway.client.cookie_jar.clear()
    assert (await gateway.client.get(PAGE)).status_code == 401
    assert (await set_key(gateway)).status_code == 401
    assert await gateway.services.store.read(find_all) == {}


async def test_a_wrong_value_leads_back_to_the_form_with_its_text(gateway):
    for name, text, words in (
        ("gemini_max_concurrency", "many", "has a value of the wrong kind"),
        ("brand_color", "red", "GATEWAY_BRAND_COLOR is not right"),
        ("contact_email", "nobody", "GATEWAY_CONTACT_EMAIL is not right"),
        ("name", "a\u0007b", "control character"),
        ("name", " ", "Enter a value"),
        ("name", "x" * 2_001, "Enter a value"),
    ):
        answer = await post(gateway, f"{PAGE}/{name}", value=text, reason="why not")
        assert answer.status_code == 400
        page = await answer.get_data(as_text=True)
        assert words in page
        assert f'value="{text}"' in page
        assert "why not</textarea>" in page
    assert await gateway.services.store.read(find_all) == {}


async def test_what_a_vendors_plugin_refuses_is_refused_in_the_form(gateway):
    assert (await set_key(gateway)).status_code == 303
    answer = await post(gateway, f"{PAGE}/gemini_models", value="no-such-model")
    assert answer.status_code == 400
    assert "no-such-model" in await answer.get_data(as_text=True)


async def test_what_is_of_the_machine_has_no_form(gateway):
    for name in ("wallet", "refund_key", "rpc_urls", "admin_password", "openai_base_url"):
        for answer in (
            await gateway.client.get(f"{PAGE}/{name}"),
            await post(gateway, f"{PAGE}/{name}", value="x", secret_value="x"),
        ):
            assert answer.status_code == 409
            assert "is set on the machine only" in await text_of(answer)
    assert (await gateway.client.get(f"{PAGE}/nothing")).status_code == 400


async def test_the_environment_wins_and_the_row_says_so(settings, provider):
    given = settings.changed(gemini_api_key="from-the-environment")
    given = attrs.evolve(given, sources={"gemini_api_key": "environment"})
    async with running(given, provider) as gateway:
        await log_in(gateway)
        row = await row_of(gateway, "gemini_api_key")
        assert (row.value, row.source, row.is_given) == ("set", "environment", True)
        text = await text_of(await gateway.client.get(f"{PAGE}?q=GEMINI_API_KEY"))
        assert "environment: it wins" in text
        answer = await set_key(gateway)
        assert answer.status_code == 409
        assert "has a value from environment, which wins" in await text_of(answer)
        # Values that the page stored before change nothing, as the row shows.
        await gateway.services.store.write(put, "gemini_api_key", stored(KEY))
        assert (await row_of(gateway, "gemini_api_key")).is_pending is False
        text = await text_of(await gateway.client.get(PAGE))
        assert "The value from the page has no effect: environment wins." in text


def stored(text: str, name: str = "gemini_api_key") -> StoredSetting:
    return StoredSetting(seal(SECRET, name, text), 1.0)


async def test_a_value_changed_meanwhile_is_not_replaced_unseen(gateway):
    assert (await post(gateway, f"{PAGE}/name", value="First", seen="")).status_code == 303
    answer = await post(gateway, f"{PAGE}/name", value="Second", seen="")
    assert answer.status_code == 409
    assert "changed meanwhile" in await text_of(answer)
    page = await (await gateway.client.get(f"{PAGE}/name")).get_data(as_text=True)
    assert 'value="First"' in page
    row = await row_of(gateway, "name")
    answer = await post(gateway, f"{PAGE}/name/clear", seen=repr(row.stored_at))
    assert answer.status_code == 303
    assert await gateway.services.store.read(find_all) == {}
    (action,) = await actions_of(gateway, "setting.clear")
    assert action.subject == "GATEWAY_NAME"
    assert (await gateway.client.get(f"{PAGE}/name/clear")).status_code == 400


async def test_without_a_secret_the_page_says_how_to_begin_and_has_no_form(settings, provider):
    async with running(attrs.evolve(settings, settings_secret=""), provider) as gateway:
        await log_in(gateway)
        text = await text_of(await gateway.client.get(PAGE))
        assert "openssl rand -hex 32" in text
        assert "Then put it beside your other settings" in text
        assert "export" not in text
        assert " Set " not in text.replace("Set the", "")
        answer = await set_key(gateway)
        assert answer.status_code == 409
        assert "First make the secret" in await text_of(answer)


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        (OTHER, "another GATEWAY_SETTINGS_SECRET sealed it"),
        ("", "GATEWAY_SETTINGS_SECRET is not set"),
    ],
)
async def test_a_wrong_or_missing_secret_starts_and_is_urgent(
    settings, provider, gateway, secret, words
):
    await set_key(gateway)
    started = with_page_settings(attrs.evolve(settings, settings_secret=secret))
    async with running(started, provider) as restarted:
        assert "gemini-3-pro-image" not in restarted.services.catalog.slugs()
        await log_in(restarted)
        text = await text_of(await restarted.client.get("/admin"))
        assert "1 setting from the page without effect" in text
        assert words in text
        assert words in await text_of(await restarted.client.get(PAGE))
        assert "A restart is due" not in text
        row = await row_of(restarted, "gemini_api_key")
        answer = await post(restarted, f"{GEMINI}/clear", seen=repr(row.stored_at))
        assert answer.status_code == 303
        assert "without effect" not in await text_of(await restarted.client.get("/admin"))


def test_each_declared_setting_is_listed_and_no_secret_is_shown():
    names = [one.name for one in attrs.fields(Settings) if "about" in one.metadata]
    secrets = [one.name for one in attrs.fields(Settings) if not one.repr and one.name in names]
    given = {name: KEY for name in secrets if name != "rpc_urls"}
    settings = Settings(**given, rpc_urls=(f"https://rpc.example/{KEY}",))
    (group,) = list_groups(settings, [], {})
    shown = {row.name: row for row in group.rows}
    assert group.title == CORE
    assert shown.keys() == set(names) - {"endpoints"}
    assert KEY not in str(group)
    assert (shown["rpc_urls"].value, shown["refund_key"].value) == ("set", "set")
    assert (shown["workers"].source, shown["network"].value) == ("default", "base")
    assert all(row.about for row in group.rows)


@attrs.frozen
class AcmeSection:
    """Declares its login as a plain setting."""

    login: str = setting("", "Login at Acme.")
    hint: str = setting("", "Hint.", on_page=True)


def test_of_third_parties_only_values_for_the_page_are_shown():
    values = {"acme_login": KEY, "acme_hint": "blue"}
    given = Settings(plugin_values=values)
    for plugin, shown in (("gateway_acme", "set"), ("gateway_gemini", KEY)):
        groups = list_groups(given, [SectionOffer(plugin, "acme", AcmeSection)], {})
        assert find_row(groups, "acme_login").value == shown
        assert find_row(groups, "acme_hint").value == "blue"


async def test_the_list_can_be_searched_and_is_complete(gateway):
    text = await text_of(await gateway.client.get(f"{PAGE}?all=1"))
    for group in await read_groups(desk_of(gateway)):
        assert group.title in text
        for row in group.rows:
            assert row.variable in text
    text = await text_of(await gateway.client.get(f"{PAGE}?q=gemini+key"))
    assert "GATEWAY_GEMINI_API_KEY" in text
    assert "GATEWAY_FAL_API_KEY" not in text
    assert "No matching settings" in await text_of(await gateway.client.get(f"{PAGE}?q=zzz"))
