"""Settings of the page: sealed, below file and environment, and only those that are declared."""

import attrs
import pytest

from gateway.errors import SettingsError
from gateway.plugins.manager import PluginManager
from gateway.settings import Settings, load_settings
from gateway.settings.page import is_strong, seal, unseal
from gateway.settings.page_values import leave_out, put_in, read_sealed, without_page
from gateway.store.page_settings import with_page_settings
from gateway.telemetry.redaction import Redactor
from gateway.web.server.serve import _create

SECRET = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"
KEY = "AIza-MARKER-4711"
# Out of reach of a stolen session: keys and addresses of money, of the machine, and of where
# keys and requests are sent; files; other access.
NEVER = (
    *("wallet", "network", "rpc", "settlement", "refund", "facilitator", "erc6492", "play_key"),
    *("database", "data_dir", "password", "limit", "bind", "base_url", "platform_url", "endpoint"),
    *("api_version", "outputs", "backup", "restore", "webhook", "alarm", "heartbeat", "metrics"),
    *("_file", "wallet_", "origins", "plugins", "role", "node", "keystore", "confirmations"),
    *("settings_secret", "loopback", "client_ip", "server", "gas", "transfer", "deployments"),
)


def sealed(**values: str) -> dict[str, str]:
    return {name: seal(SECRET, name, text) for name, text in values.items()}


def settings(**more) -> Settings:
    return Settings(wallet="0x" + "11" * 20, settings_secret=SECRET, **more)


def test_what_was_sealed_is_read_with_its_secret_and_name_only():
    text = seal(SECRET, "gemini_api_key", KEY)
    assert KEY not in text
    assert text != seal(SECRET, "gemini_api_key", KEY)
    assert unseal(SECRET, "gemini_api_key", text) == KEY
    tampered = text[:-6] + ("A" if text[-6] != "A" else "B") + text[-5:]
    for secret, name, found in (
        (OTHER, "gemini_api_key", text),
        (SECRET, "openai_api_key", text),
        (SECRET, "gemini_api_key", tampered),
        (SECRET, "gemini_api_key", ""),
        (SECRET, "gemini_api_key", "v1.%%%"),
        (SECRET, "gemini_api_key", text.replace("v1", "v2")),
    ):
        with pytest.raises(ValueError):
            unseal(secret, name, found)


@pytest.mark.parametrize(
    ("text", "ok"), [("", True), (SECRET, True), ("short", False), ("a" * 64, False)]
)
def test_a_secret_is_long_and_not_one_character_repeated(text, ok):
    assert is_strong(text) is ok
    if not ok:
        with pytest.raises(SettingsError, match="GATEWAY_SETTINGS_SECRET is not right"):
            put_in(attrs.evolve(settings(), settings_secret=text), {})


def test_values_are_read_like_variables_of_the_environment():
    found = read_sealed(settings(), sealed(name="Pixel Shop", sandbox="true", gemini_api_key=KEY))
    assert (found.name, found.sandbox) == ("Pixel Shop", True)
    assert found.plugin_values["gemini_api_key"] == KEY
    assert found.page_names == {"name", "sandbox", "gemini_api_key"}
    assert without_page(found).plugin_values == {}
    assert without_page(found).name == Settings().name


def test_file_and_environment_win(tmp_path, monkeypatch):
    (tmp_path / "gateway.toml").write_text('contact_email = "me@example.com"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GATEWAY_GEMINI_API_KEY", "from-the-environment")
    monkeypatch.setenv("GATEWAY_WALLET", "0x" + "11" * 20)
    loaded = load_settings(settings_secret=SECRET)
    found = read_sealed(
        loaded, sealed(gemini_api_key=KEY, contact_email="page@example.com", name="Page")
    )
    assert found.plugin_values["gemini_api_key"] == "from-the-environment"
    assert found.contact_email == "me@example.com"
    assert (found.name, found.page_names) == ("Page", {"name"})
    assert found.sources == {
        "contact_email": "gateway.toml",
        "gemini_api_key": "environment",
        "wallet": "environment",
        "settings_secret": "the command",
    }


def test_another_secret_leaves_the_values_unread_and_everything_else_right():
    found = read_sealed(
        attrs.evolve(settings(), settings_secret=OTHER), sealed(name="Page", gemini_api_key=KEY)
    )
    assert (found.name, dict(found.plugin_values)) == (Settings().name, {})
    assert "another GATEWAY_SETTINGS_SECRET" in found.page_unread["name"]
    assert found.page_unread.keys() == {"name", "gemini_api_key"}


@pytest.mark.parametrize("values", [{"sandbox": "perhaps"}, {"name": '"quoted"'}, {"bind": "x:1"}])
def test_a_stored_value_that_is_wrong_takes_no_effect(values):
    found = read_sealed(settings(), sealed(**values, contact_email="me@example.com"))
    assert (found.sandbox, found.name, found.bind) == (False, Settings().name, Settings().bind)
    # The other one does.
    assert (found.contact_email, found.page_names) == ("me@example.com", {"contact_email"})
    assert found.page_unread.keys() == values.keys()
    assert all(found.page_unread.values())


def test_a_value_of_the_page_can_be_left_out():
    page = read_sealed(settings(), sealed(name="Page", contact_email="me@example.com"))
    found = leave_out(page, ["name"], "refused")
    assert (found.name, found.page_unread) == (Settings().name, {"name": "refused"})
    assert found.contact_email == "me@example.com"


def test_no_setting_of_money_access_or_an_address_can_be_set_on_the_page():
    declared = {one.name: one for one in attrs.fields(Settings) if "about" in one.metadata}
    for section in PluginManager().sections():
        declared |= section.fields
    settable = {name for name, field in declared.items() if field.metadata.get("on_page")}
    assert {"gemini_api_key", "openai_image_price", "fal_models", "name", "logo_url"} <= settable
    allowed = ("logo_url", "imprint_url", "terms_url")
    for name in settable - set(allowed):
        assert not any(word in name for word in NEVER), name
        assert "url" not in name, name


def test_only_what_is_declared_for_the_page_can_be_put_in():
    for field in attrs.fields(Settings):
        if not field.metadata.get("on_page"):
            with pytest.raises(SettingsError, match="cannot be set on the page"):
                put_in(settings(), {field.name: "1"})


def test_a_start_that_a_value_of_the_page_would_stop_goes_on_without_it():
    tried: list[Settings] = []

    def create_app(settings: Settings, *, redactor: Redactor) -> Settings:
        tried.append(settings)
        if settings.plugin_values:
            raise SettingsError("GATEWAY_GEMINI_MODELS: no such model.")
        return settings

    chosen = read_sealed(settings(), sealed(gemini_models="gone", name="Page"))
    app = _create(create_app, chosen, Redactor())
    assert (len(tried), app.name) == (2, "Page")
    assert app.page_unread == {"gemini_models": "GATEWAY_GEMINI_MODELS: no such model."}
    # A mistake that is not the page's still stops the start.
    with pytest.raises(SettingsError, match="no such model"):
        _create(create_app, settings(plugin_values={"x": "1"}), Redactor())


def test_a_folder_without_a_database_has_no_values_and_gets_none(tmp_path):
    (tmp_path / "gateway.db").touch()
    for folder in (tmp_path, tmp_path / "none"):
        assert with_page_settings(settings(data_dir=folder)).page_sealed == {}
    assert not (tmp_path / "none").exists()
    (tmp_path / "gateway.db").write_bytes(b"no database" * 100)
    with pytest.raises(SettingsError, match="cannot be opened"):
        with_page_settings(settings(data_dir=tmp_path))
