"""Settings of copies: a private bucket with its own key, or a folder."""

import pytest

from gateway.errors import SettingsError
from gateway.plugins.installed import find_sections
from gateway.settings import load_settings
from gateway.telemetry.redaction import secrets_of
from gateway_backups.settings import backup_settings_of

WALLET = "0x" + "1" * 40
KEYS = {"backup_s3_access_key_id": "id", "backup_s3_secret_access_key": "very hidden"}


def load(**changes):
    return load_settings(wallet=WALLET, **changes)


def chosen(**changes):
    return backup_settings_of(load(**changes))


def test_without_an_address_there_are_no_copies():
    assert chosen().bucket() is None
    assert chosen().folder() is None


def test_a_bucket_has_a_name_a_prefix_and_a_store():
    settings = load(
        backup_url="s3://mine/a/b/", backup_s3_endpoint="https://minio.example.com:9000/", **KEYS
    )
    bucket = backup_settings_of(settings).bucket()
    assert (bucket.name, bucket.prefix) == ("mine", "a/b")
    assert bucket.base_url == "https://minio.example.com:9000"
    assert "very hidden" not in repr(settings)
    assert "very hidden" in list(secrets_of(settings, find_sections(settings)))


def test_a_folder_is_named_by_its_whole_path():
    assert str(chosen(backup_url="file:///mnt/my%20copies").folder()) == "/mnt/my copies"


def test_the_key_of_other_programs_is_not_taken(monkeypatch):
    """On Fly they are those of the outputs' bucket."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tid_1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tsec_1")
    with pytest.raises(SettingsError, match="GATEWAY_BACKUP_S3_ACCESS_KEY_ID"):
        chosen(backup_url="s3://mine")


def test_the_outputs_key_is_refused():
    outputs = {
        "outputs_url": "s3://outputs",
        "outputs_access_key_id": "id",
        "outputs_secret_access_key": "x",
    }
    with pytest.raises(SettingsError, match="not the outputs' key"):
        chosen(backup_url="s3://mine", **KEYS, **outputs)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backup_url", "mine"),
        ("backup_url", "http://mine/a"),
        ("backup_url", "s3://"),
        ("backup_url", "s3://mine/../a"),
        ("backup_url", "file://copies"),
        ("backup_url", "file:///"),
        ("backup_hours", 0.0),
        ("backup_hours", float("nan")),
        ("backup_s3_endpoint", "minio"),
        ("backup_s3_region", "a b"),
        ("backup_s3_addressing", "both"),
        ("backup_s3_secret_access_key", ""),
    ],
)
def test_a_mistake_is_one_sentence(name, value):
    given = {"backup_url": "s3://mine", **KEYS, name: value}
    with pytest.raises(SettingsError, match=f"GATEWAY_{name.upper()} is not"):
        chosen(**given)
