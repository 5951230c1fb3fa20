"""A rehearsal uses the operator's settings, and nothing of the real shop's money or data."""

import os

import attrs
import pytest

from gateway.errors import SettingsError
from gateway.plugins.installed import OPTIONAL_PARTS, find_section
from gateway.settings import Settings
from gateway.settings.loader import load_settings
from gateway_demo.rehearsal.stage import Stage

WALLET = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
REAL = {
    "WALLET": WALLET,
    "SETTLEMENT_KEYS": "0x" + "11" * 32,
    "REFUND_KEY": "0x" + "22" * 32,
    "RPC_URLS": "https://mainnet.base.org",
    "DATA_DIR": "/var/lib/shop",
    "DATABASE_URL": "postgresql://gateway@db.example.com/gateway",
    "OUTPUTS_URL": "s3://shop/outputs",
    "LIMITS_URL": "redis://redis.example.com",
    "BACKUP_URL": "s3://shop/copies",
    "RESTORE": "latest",
    "HEARTBEAT_URL": "https://hc.example.com/1",
    "METRICS_BIND": "0.0.0.0:9091",
    "BASE_URL": "https://shop.example.com",
    "BIND": "0.0.0.0:8123",
    "CLIENT_IP_HEADER": "Fly-Client-IP",
    "SETTLEMENT": "facilitator",
    "FACILITATOR_URL": "https://facilitator.example.com",
    "ROLE": "web",
    "NAME": "Nine Pictures",
    "OPENAI_API_KEY": "sk-own",
    "ALARM_WEBHOOK": "https://alarms.example.com",
}


@pytest.fixture
def clean(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("GATEWAY_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def stage(clean, tmp_path):
    return Stage(folder=tmp_path / "play", rpc_url="http://127.0.0.1:8545")


@pytest.fixture
def real(clean, monkeypatch):
    for name, value in REAL.items():
        monkeypatch.setenv(f"GATEWAY_{name}", value)


def test_no_key_database_bucket_or_copy_of_the_real_shop_is_used(real, stage):
    settings = stage.load_settings()
    used = f"{attrs.asdict(settings)} {settings.plugin_values}"
    kept = ("WALLET", "NAME", "OPENAI_API_KEY", "ALARM_WEBHOOK")
    words = ("FACILITATOR_URL", "SETTLEMENT", "ROLE")  # unused or asserted below
    for name in REAL.keys() - {*kept, *words}:
        assert REAL[name] not in used, name
    assert settings.data_dir == stage.folder / "data"
    assert settings.rpc_urls == (stage.rpc_url,)
    assert (settings.settlement, settings.role) == ("local", "all")


def test_the_operators_wallet_name_and_plugins_are_used(real, stage):
    settings = stage.load_settings()
    assert (settings.wallet, settings.name) == (WALLET, "Nine Pictures")
    assert settings.plugin_values["openai_api_key"] == "sk-own"
    assert settings.plugin_values["alarm_webhook"] == "https://alarms.example.com"


def test_only_this_machine_reaches_it_and_no_signature_is_good_on_base(real, stage):
    settings = stage.load_settings()
    assert (settings.bind, settings.base_url) == ("127.0.0.1:8123", "http://127.0.0.1:8123")
    assert settings.chain.chain_id != load_settings(role="all").chain.chain_id == 8453


def test_it_needs_no_setting_at_all(stage):
    settings = stage.load_settings()
    assert settings.bind == "127.0.0.1:8080"
    assert settings.wallet == stage.wallet
    assert len({stage.settlement_key, stage.refund_key, stage.purse_key}) == 3


def test_a_mistake_in_the_real_settings_is_told(stage, monkeypatch):
    monkeypatch.setenv("GATEWAY_WORKERS", "0")
    with pytest.raises(SettingsError, match="GATEWAY_WORKERS"):
        stage.load_settings()


def test_a_shop_that_sells_by_a_facilitator_alone_can_rehearse(stage, monkeypatch):
    monkeypatch.setenv("GATEWAY_PLUGINS_DISABLED", "gateway-local-settler,gateway_kie")
    assert stage.load_settings().plugins_disabled == ("gateway_kie",)


def test_a_disabled_plugin_does_not_run(stage, monkeypatch):
    monkeypatch.setenv("GATEWAY_PLUGINS_DISABLED", "gateway-demo")
    with pytest.raises(SettingsError, match="needs gateway_demo, which GATEWAY_PLUGINS_DISABLED"):
        stage.load_settings()


def test_two_rehearsals_share_no_key(tmp_path):
    one, other = Stage(folder=tmp_path), Stage(folder=tmp_path)
    assert one.settlement_key != other.settlement_key
    assert one.refund_key not in repr(one)


# -- so that a new setting is thought about

_HARMLESS = {
    "play_key",  # replaced by the purse
    "facilitator_url",  # unused, as are its key and token: `local` settles
    "facilitator_token",
    "facilitator_key_id",
    "facilitator_key_secret",
    "base_url",  # replaced
    "rpc_urls",
    "bind",
    "settlement_key",
    "refund_key",
    "node",
    "logo_url",  # shown to buyers only
    "imprint_url",
    "terms_url",
    "alarm_urls",  # the operator wants to see an alarm
    "alarm_webhook",
    "alarm_webhook_secret",
    "outputs_access_key_id",  # unused without GATEWAY_OUTPUTS_URL
    "outputs_secret_access_key",
    "outputs_endpoint",
    "outputs_region",
    "backup_s3_endpoint",  # unused without GATEWAY_BACKUP_URL
    "backup_s3_region",
    "backup_s3_access_key_id",
    "backup_s3_secret_access_key",
}


def test_every_address_and_key_of_a_setting_is_replaced_or_known_to_be_harmless(stage):
    parts = filter(None, map(find_section, OPTIONAL_PARTS))
    names = {field.name for kind in (Settings, *parts) for field in attrs.fields(kind)}
    words = ("_url", "_key", "bind", "keystore", "webhook", "restore", "endpoint", "region")
    risky = {name for name in names if any(word in name for word in words)} - {"endpoints"}
    assert len(risky) > 20
    assert risky <= stage.replaced().keys() | _HARMLESS


def test_a_stage_survives_json(stage):
    assert Stage.from_json(stage.to_json()) == stage
