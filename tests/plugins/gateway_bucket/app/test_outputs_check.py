"""The report of `gateway check` about a bucket."""

from gateway.outputs import open_outputs
from gateway.settings import load_settings
from gateway_check.rows import make_row

WALLET = "0x" + "1" * 40
KEYS = {"outputs_access_key_id": "id", "outputs_secret_access_key": "very hidden"}


# -- gateway check


async def row_of(settings):
    return await make_row("outputs", open_outputs(settings, "gateway check").probe)


async def test_the_check_writes_reads_and_deletes_an_object(bucket, tmp_path):
    settings = load_settings(
        wallet=WALLET,
        data_dir=tmp_path,
        outputs_url=f"s3://{bucket.name}",
        outputs_endpoint=bucket.endpoint,
        **KEYS,
    )
    row = await row_of(settings)
    assert row.ok
    assert row.found.startswith(f"bucket {bucket.name} at 127.0.0.1:")
    assert list((tmp_path / "outputs").iterdir()) == []


async def test_the_check_says_what_is_wrong_with_a_bucket(bucket, tmp_path):
    settings = load_settings(
        wallet=WALLET,
        data_dir=tmp_path,
        outputs_url="s3://no-such-bucket",
        outputs_endpoint=bucket.endpoint,
        **KEYS,
    )
    row = await row_of(settings)
    assert not row.ok
    assert row.found.endswith("cannot take outputs: NoSuchBucket.")
