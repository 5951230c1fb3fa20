"""Values as people write them: with quotes, on Windows, and with the commas of other lists."""

import pytest

from gateway.errors import SettingsError
from gateway.plugins.installed import find_sections
from gateway.settings import load_settings
from gateway_operator.settings import split_urls

WALLET = "0x" + "b2" * 20


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("GATEWAY_WALLET", WALLET)
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal_of(**written) -> str:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in written.items():
            patch.setenv(name, value)
        with pytest.raises(SettingsError) as refusal:
            find_sections(load_settings())
    return str(refusal.value)


# Plugins read the last two themselves.
@pytest.mark.parametrize(
    "name",
    [
        "GATEWAY_CLIENT_IP_HEADER",
        "GATEWAY_ADMIN_PASSWORD",
        "GATEWAY_NODE",
        "GATEWAY_NAME",
        "GATEWAY_FACILITATOR_TOKEN",
        "GATEWAY_OPENAI_API_KEY",
    ],
)
@pytest.mark.parametrize(
    "value",
    ["'X-Real-IP'", '"X-Real-IP"', "`X-Real-IP`", '"X-Real-IP" ', "'a' # behind Caddy", "“a”"],
)
def test_quotes_around_a_value_are_refused_by_name(name, value):
    message = refusal_of(**{name: value})
    assert message == f"{name} has quotes around its value. Remove the quotes."


@pytest.mark.parametrize(
    "value", ["abc\r", "abc\n", "a\x1bbc", "\rabc", "a\x7fbc", "abc\u2028", "\ufeffabc", "abc\x85"]
)
@pytest.mark.parametrize("name", ["GATEWAY_ADMIN_PASSWORD", "GATEWAY_OPENAI_API_KEY"])
def test_control_characters_are_refused_by_name_and_the_value_is_not_shown(name, value):
    message = refusal_of(**{name: value})
    assert message.startswith(f"{name} holds a line end or another control character.")
    assert "bc" not in message


def test_a_password_of_two_lines_is_refused():
    assert refusal_of(GATEWAY_ADMIN_PASSWORD="a\nb").startswith("GATEWAY_ADMIN_PASSWORD holds")


@pytest.mark.parametrize("name", ["GATEWAY_FACILITATOR_KEY_SECRET", "GATEWAY_ACME_KEY"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_pem_has_several_lines(monkeypatch, name, line_end):
    """A secret store keeps a file's last line end, too."""
    lines = ["-----BEGIN KEY-----", "AAAA", "-----END KEY-----", ""]
    monkeypatch.setenv(name, line_end.join(lines))
    load_settings()


@pytest.mark.parametrize(
    "value",
    [
        "👩\u200d🍳 Kitchen",
        "\u0645\u06cc\u200c\u062e",
        "it's",
        '6" or 7"',
        "'",
        "a 'b'",
        "crème",
        "'a' or b",
    ],
)
def test_quotes_inside_a_value_are_its_own(monkeypatch, value):
    monkeypatch.setenv("GATEWAY_NAME", value)
    assert load_settings().name == value


@pytest.mark.parametrize(
    "value", ["X Real IP", "X-Real-IP:", "X-Real-IP, Forwarded", "Ä", "'X-Real-IP"]
)
def test_a_header_that_has_no_possible_name_is_refused(value):
    message = refusal_of(GATEWAY_CLIENT_IP_HEADER=value)
    assert message.startswith("GATEWAY_CLIENT_IP_HEADER is not right.")


def test_a_file_with_a_byte_order_mark_is_read(folder):
    (folder / "gateway.toml").write_text('name = "Märchen"\nacme_key = "k"\n', "utf-8-sig")
    loaded = load_settings()
    assert (loaded.name, loaded.plugin_values["acme_key"]) == ("Märchen", "k")


@pytest.mark.parametrize("written", [b'name = "a\n', b"name = 'a'\nname = 'b'", b'name = "\xff"'])
def test_a_file_that_cannot_be_read_is_named(folder, monkeypatch, written):
    file = folder / "other.toml"
    file.write_bytes(written)
    assert refusal_of(GATEWAY_CONFIG=str(file)).startswith(f"{file} cannot be read: ")


def test_quotes_of_the_environment_inside_the_files_quotes_are_refused_too(folder):
    (folder / "gateway.toml").write_text("name = \"'Acme'\"\n")
    assert refusal_of() == "GATEWAY_NAME has quotes around its value. Remove the quotes."


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("json://a/x,json://b/y", ["json://a/x", "json://b/y"]),
        ("json://a/x , ntfys://b", ["json://a/x", "ntfys://b"]),
        ("mailto://u:p@h?to=a@b,c@d json://a", ["mailto://u:p@h?to=a@b,c@d", "json://a"]),
        ("json://a\njson://b,\n", ["json://a", "json://b"]),
        ("", []),
    ],
)
def test_commas_part_the_channels_of_alarms(text, urls):
    assert split_urls(text) == urls


@pytest.mark.parametrize("urls", ["json://a;json://b", "json://a|json://b", "json"])
def test_addresses_of_alarms_that_nothing_parts_are_refused(urls):
    assert refusal_of(GATEWAY_ALARM_URLS=urls).startswith("GATEWAY_ALARM_URLS is not right.")


@pytest.mark.parametrize(
    "written",
    [
        "endpoints = 5",
        'endpoints = "document-parser"',
        "endpoints = [1]",
        "[endpoints.document-parser]\nprize = 1",
        "[endpoints]\ndocument-parser = 5",
        "[name]\nfirst = 1\n[workers]\nfew = 2",
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(folder, written):
    (folder / "gateway.toml").write_text(written)
    with pytest.raises(SettingsError, match=r"^GATEWAY_\w+ has a value of the wrong kind\. "):
        load_settings()


def test_paths_are_relative_to_the_current_folder_each_time(folder, monkeypatch):
    monkeypatch.setenv("GATEWAY_DATA_DIR", "data")
    for name in ("one", "two"):
        (folder / name).mkdir()
        monkeypatch.chdir(folder / name)
        assert load_settings().data_dir == folder / name / "data"
