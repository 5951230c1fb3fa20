"""Settings of the alarms: valid values, and one sentence for each invalid one."""

import pytest

from gateway.errors import SettingsError
from gateway.plugins.installed import find_sections
from gateway.settings import Settings
from gateway.telemetry.redaction import Redactor, secrets_of
from gateway_operator.settings import operator_settings_of, parse_time
from tests.conftest import WALLET

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SETTINGS = Settings(wallet=WALLET)


@pytest.mark.parametrize(
    "values",
    [
        {"alarm_webhook": "http://10.0.0.5:9000/alarms", "alarm_webhook_secret": SECRET},
        {"alarm_urls": "ntfys://topic mailto://user:pass@example.com?to=a@b.de,c@d.de"},
        {"alarm_gas": "20/20", "alarm_failures": "1/20", "alarm_unclaimed_hours": "0.5/2"},
        {"heartbeat_url": "https://hc-ping.com/uuid", "digest_at": "23:59"},
        {"digest_at": "off"},
    ],
)
def test_right_values(values):
    operator_settings_of(SETTINGS.changed(**values))


@pytest.mark.parametrize(
    ("values", "variable"),
    [
        ({"alarm_webhook": "https://alerts.example.com"}, "GATEWAY_ALARM_WEBHOOK_SECRET"),
        ({"alarm_webhook_secret": "hunter2"}, "GATEWAY_ALARM_WEBHOOK_SECRET"),
        ({"alarm_webhook_secret": "whsec_c2hvcnQ="}, "GATEWAY_ALARM_WEBHOOK_SECRET"),
        (
            {"alarm_webhook": "ftp://alerts.example.com", "alarm_webhook_secret": SECRET},
            "GATEWAY_ALARM_WEBHOOK",
        ),
        ({"alarm_urls": "my-topic"}, "GATEWAY_ALARM_URLS"),
        ({"alarm_gas": "20/200"}, "GATEWAY_ALARM_GAS"),
        ({"alarm_failures": "5"}, "GATEWAY_ALARM_FAILURES"),
        ({"alarm_refund_hours": 0.0}, "GATEWAY_ALARM_REFUND_HOURS"),
        ({"alarm_queue_seconds": "600/60"}, "GATEWAY_ALARM_QUEUE_SECONDS"),
        ({"heartbeat_url": "hc-ping.com/uuid"}, "GATEWAY_HEARTBEAT_URL"),
        ({"digest_at": "7"}, "GATEWAY_DIGEST_AT"),
        ({"digest_at": "24:00"}, "GATEWAY_DIGEST_AT"),
    ],
)
def test_a_wrong_value_is_one_sentence_that_shows_no_secret(values, variable):
    with pytest.raises(SettingsError) as caught:
        operator_settings_of(SETTINGS.changed(**values))
    sentence = str(caught.value)
    assert sentence.startswith(f"{variable} is not right.") or "is not set" in sentence
    assert "hunter2" not in sentence


def test_apprise_that_is_not_installed_is_told_at_the_start(monkeypatch):
    find_sections(SETTINGS)
    chosen = SETTINGS.changed(alarm_urls="ntfys://topic")
    find_sections(chosen)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"generation-gateway\[alarms\]"):
        find_sections(chosen)


def test_no_address_of_a_channel_is_shown_or_logged():
    urls = "mailto://user:hunter2hunter2@example.com ntfys://very-secret-topic"
    settings = SETTINGS.changed(
        alarm_urls=urls,
        heartbeat_url="https://hc-ping.com/0b1c2d3e-1111-2222",
        alarm_webhook="https://alerts.example.com/hooks/abcdef0123456789",
        alarm_webhook_secret=SECRET,
    )
    clean = Redactor(secrets_of(settings, find_sections(settings))).without_secrets
    for secret in (*urls.split(), "0b1c2d3e-1111-2222", "abcdef0123456789", SECRET):
        assert secret not in repr(settings)
        assert secret not in clean(f"It asked {secret} for it.")


def test_a_time_of_day_is_read_as_seconds():
    assert parse_time("07:30") == 27_000.0
    assert parse_time("off") is None
