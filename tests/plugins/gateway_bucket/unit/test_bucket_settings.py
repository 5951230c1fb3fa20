"""Settings of the bucket:

the variables of Fly and Amazon's tools suffice; a mistake is one sentence.
"""

import pytest

from gateway.errors import SettingsError
from gateway.outputs import DiskOutputs, open_outputs
from gateway.settings import load_settings
from gateway_bucket.fallback import BucketWithFallback
from gateway_bucket.outputs import BucketOutputs
from gateway_bucket.settings import bucket_of
from gateway_check.rows import make_row

WALLET = "0x" + "1" * 40
KEYS = {"outputs_access_key_id": "id", "outputs_secret_access_key": "very hidden"}
TIGRIS = {
    "AWS_ACCESS_KEY_ID": "tid_1",
    "AWS_SECRET_ACCESS_KEY": "tsec_1",
    "AWS_ENDPOINT_URL_S3": "https://fly.storage.tigris.dev",
    "AWS_REGION": "auto",
    "BUCKET_NAME": "summer-grass-2004",
}


def set_bucket(**changes):
    return bucket_of(load_settings(wallet=WALLET, **changes))


@pytest.fixture
def tigris(monkeypatch):
    for name, value in TIGRIS.items():
        monkeypatch.setenv(name, value)


def test_outputs_stay_on_the_disk_unless_a_bucket_is_named(tigris, tmp_path):
    settings = load_settings(wallet=WALLET, data_dir=tmp_path)
    assert bucket_of(settings) is None
    assert isinstance(open_outputs(settings, "secret"), DiskOutputs)


def test_what_flys_tigris_sets_is_enough(tigris, tmp_path):
    settings = load_settings(wallet=WALLET, outputs_url="s3://", data_dir=tmp_path)
    found = bucket_of(settings)
    assert (found.name, found.prefix, found.region) == ("summer-grass-2004", "", "auto")
    assert found.base_url == "https://summer-grass-2004.fly.storage.tigris.dev"
    assert (found.access_key_id, found.secret_access_key) == ("tid_1", "tsec_1")
    assert isinstance(open_outputs(settings, "secret"), BucketWithFallback)


def test_nodes_keep_no_output_where_the_others_do_not_find_it(tigris, tmp_path):
    settings = load_settings(
        wallet=WALLET,
        outputs_url="s3://",
        data_dir=tmp_path,
        database_url="postgresql://db.example.com/gateway",
    )
    assert isinstance(open_outputs(settings, "secret"), BucketOutputs)


def test_the_region_of_amazons_tools_is_ours(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    found = set_bucket(outputs_url="s3://shop", **KEYS)
    assert found.base_url == "https://shop.s3.eu-central-1.amazonaws.com"
    assert found.region == "eu-central-1"


def test_our_own_settings_win_over_what_others_set(tigris):
    found = set_bucket(
        outputs_url="s3://mine/a/b/",
        outputs_endpoint="https://minio.example.com:9000/",
        outputs_region="eu-1",
        **KEYS,
    )
    assert (found.name, found.prefix, found.region) == ("mine", "a/b", "eu-1")
    assert found.base_url == found.endpoint == "https://minio.example.com:9000"
    assert (found.access_key_id, found.secret_access_key) == ("id", "very hidden")


def test_they_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("GATEWAY_OUTPUTS_URL", "s3://from-environment")
    monkeypatch.setenv("GATEWAY_OUTPUTS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("GATEWAY_OUTPUTS_SECRET_ACCESS_KEY", "very hidden")
    found = set_bucket()
    assert (found.name, found.secret_access_key) == ("from-environment", "very hidden")


@pytest.mark.parametrize(
    ("changes", "base_url", "region"),
    [
        ({}, "https://shop.s3.us-east-1.amazonaws.com", "us-east-1"),
        ({"outputs_region": "eu-west-1"}, "https://shop.s3.eu-west-1.amazonaws.com", "eu-west-1"),
        ({"outputs_addressing": "path"}, "https://s3.us-east-1.amazonaws.com", "us-east-1"),
        ({"outputs_endpoint": "https://t3.storage.dev"}, "https://shop.t3.storage.dev", "auto"),
        (
            {"outputs_endpoint": "https://1a.r2.cloudflarestorage.com"},
            "https://1a.r2.cloudflarestorage.com",
            "auto",
        ),
        ({"outputs_endpoint": "http://10.0.0.2:9000"}, "http://10.0.0.2:9000", "auto"),
        (
            {"outputs_endpoint": "https://s3.example.com", "outputs_addressing": "host"},
            "https://shop.s3.example.com",
            "auto",
        ),
    ],
)
def test_every_store_is_addressed_in_its_own_way(changes, base_url, region):
    found = set_bucket(outputs_url="s3://shop", **KEYS, **changes)
    assert (found.base_url, found.region) == (base_url, region)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"outputs_url": "s3://"}, "GATEWAY_OUTPUTS_URL"),
        ({"outputs_url": "s3://a"}, "GATEWAY_OUTPUTS_URL"),
        ({"outputs_url": "s3://bucket/../else"}, "GATEWAY_OUTPUTS_URL"),
        ({"outputs_url": "s3://bucket//double"}, "GATEWAY_OUTPUTS_URL"),
        ({"outputs_url": "s3://bucket?region=x"}, "GATEWAY_OUTPUTS_URL"),
        ({"outputs_url": "s3://id:key@bucket"}, "GATEWAY_OUTPUTS_URL"),
        ({"outputs_url": "bucket"}, "GATEWAY_OUTPUTS_URL"),
        ({"outputs_endpoint": "fly.storage.tigris.dev"}, "GATEWAY_OUTPUTS_ENDPOINT"),
        ({"outputs_endpoint": "https://s3.example.com/bucket"}, "GATEWAY_OUTPUTS_ENDPOINT"),
        ({"outputs_region": "eu west"}, "GATEWAY_OUTPUTS_REGION"),
        ({"outputs_addressing": "virtual"}, "GATEWAY_OUTPUTS_ADDRESSING"),
        ({"outputs_access_key_id": ""}, "GATEWAY_OUTPUTS_ACCESS_KEY_ID is not set"),
        ({"outputs_secret_access_key": ""}, "GATEWAY_OUTPUTS_SECRET_ACCESS_KEY is not set"),
        ({"outputs_secret_access_key": "two\nlines"}, "GATEWAY_OUTPUTS_SECRET_ACCESS_KEY"),
        ({"outputs_endpoint": "https://two\nlines"}, "GATEWAY_OUTPUTS_ENDPOINT"),
    ],
)
def test_a_mistake_stops_the_start_with_one_sentence(changes, named):
    with pytest.raises(SettingsError) as stopped:
        set_bucket(**({"outputs_url": "s3://my-bucket"} | KEYS | changes))
    assert str(stopped.value).startswith(named)
    assert f"Example: {named.split()[0]}=" in str(stopped.value)
    assert "very hidden" not in str(stopped.value)


def test_keys_are_never_shown():
    settings = load_settings(wallet=WALLET, outputs_url="s3://my-bucket", **KEYS)
    assert "very hidden" not in f"{settings!r} {bucket_of(settings)!r} {bucket_of(settings)}"
    assert str(bucket_of(settings)) == "my-bucket at s3.us-east-1.amazonaws.com"


# -- gateway check


async def row_of(settings):
    return await make_row("outputs", open_outputs(settings, "gateway check").probe)


async def test_the_check_looks_at_the_folder_where_there_is_no_bucket(tmp_path):
    settings = load_settings(wallet=WALLET, data_dir=tmp_path)
    assert (await row_of(settings)).ok
    (tmp_path / "outputs").rmdir()
    (tmp_path / "outputs").write_text("a file")
    row = await row_of(settings)
    assert not row.ok
    assert "folder" in row.found
