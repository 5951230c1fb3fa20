"""Outputs in a bucket: their links, and the behaviour while it is down."""

import datetime as dt
import re
import time
from urllib.parse import parse_qs, urlsplit

import attrs
import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from werkzeug import Response

from gateway import Output, Result
from gateway.contracts.outputs import OutputStoreUnavailable
from gateway.domain import StoredOutput
from gateway.errors import NotFound
from gateway_bucket.fallback import BucketWithFallback
from gateway_bucket.outputs import BucketOutputs
from gateway_bucket.settings import Bucket
from tests.conftest import PNG
from tests.plugins.gateway_bucket.app.conftest import fetch
from tests.unit.outputs.conftest import LEASE, PICTURE, listed

LATER = time.time() + 86_400


@pytest.fixture
def kept(bucket) -> BucketOutputs:
    return BucketOutputs(bucket, "secret")


@pytest.fixture
def down(dead_bucket, local) -> BucketWithFallback:
    return BucketWithFallback(BucketOutputs(dead_bucket, "secret"), local)


async def link_to(output_store, output, *, lasts_s=3600.0) -> str:
    (link,) = await output_store.links([output], now=1000.0, expires_at=1000.0 + lasts_s)
    return link


def asked_of(link: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}


# -- links


async def test_a_link_gives_the_object_to_anybody_also_in_parts(kept):
    data = bytes(range(256)) * 4
    large = Result(outputs=(Output(data=data, media_type="image/webp"),))
    (output,) = (await kept.save(LEASE, large)).outputs
    link = await link_to(kept, output)
    whole = await fetch(link)
    assert (whole.status, whole.body) == (200, data)
    part = await fetch(link, Range="bytes=100-199")
    assert (part.status, part.body) == (206, data[100:200])
    beyond = await fetch(link, Range="bytes=5000-")
    assert beyond.status == 416


@pytest.mark.parametrize(
    ("is_in_host", "begins"),
    [
        (False, "https://fly.storage.tigris.dev/my-bucket/shop/place/task/0.png?"),
        (True, "https://my-bucket.fly.storage.tigris.dev/shop/place/task/0.png?"),
    ],
)
async def test_a_link_is_signed_as_amazons_own_library_signs_it(is_in_host, begins, monkeypatch):
    bucket = Bucket(
        name="my-bucket",
        prefix="",
        endpoint="https://fly.storage.tigris.dev",
        region="auto",
        is_in_host=is_in_host,
        access_key_id="tid_1",
        secret_access_key="tsec_1",
    )
    output = StoredOutput(
        key="s3:shop/place/task/0.png", media_type="image/png", size_bytes=1, sha256="0"
    )
    link = await link_to(BucketOutputs(bucket, "s"), output, lasts_s=77)
    assert link.startswith(begins)
    asked = asked_of(link)
    signed_at = dt.datetime.strptime(asked["X-Amz-Date"] + "+00:00", "%Y%m%dT%H%M%SZ%z")
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: signed_at)
    request = AWSRequest("GET", link.partition("?")[0])
    keys = Credentials(bucket.access_key_id, bucket.secret_access_key)
    botocore.auth.S3SigV4QueryAuth(keys, "s3", bucket.region, expires=77).add_auth(request)
    assert asked_of(request.url) == asked
    assert bucket.secret_access_key not in link


@pytest.mark.parametrize(
    ("lasts_s", "expected"),
    [(60, 60), (59.9, 59), (3 * 86_400, 3 * 86_400), (30 * 86_400, 604_800)],
)
async def test_a_link_lasts_as_long_as_the_output_but_no_longer_than_s3_signs_for(
    kept, lasts_s, expected
):
    (output,) = (await kept.save(LEASE, PICTURE)).outputs
    asked = asked_of(await link_to(kept, output, lasts_s=lasts_s))
    assert asked["X-Amz-Expires"] == str(expected)


async def test_other_programs_variables_change_neither_key_nor_place(bucket, monkeypatch):
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_BUCKET"):
        monkeypatch.setenv(name, "another")
    kept = BucketOutputs(bucket, "secret")
    (output,) = (await kept.save(LEASE, PICTURE)).outputs
    link = await link_to(kept, output)
    assert (await fetch(link)).body == PNG
    assert asked_of(link)["X-Amz-Credential"].startswith("key/")
    assert "X-Amz-Security-Token" not in asked_of(link)


async def test_the_gateway_itself_serves_nothing_of_a_bucket(kept):
    (output,) = (await kept.save(LEASE, PICTURE)).outputs
    with pytest.raises(NotFound):
        kept.open(output.key, expires="9999999999", signature="x", now=0)


# -- separate places


async def test_two_gateways_in_one_bucket_do_not_see_each_others_outputs(bucket):
    one, other = BucketOutputs(bucket, "one"), BucketOutputs(bucket, "other")
    (output,) = (await one.save(LEASE, PICTURE)).outputs
    assert await listed(one, LATER) == [output.key]
    assert await listed(other, LATER) == []
    assert output.key.startswith("s3:shop/outputs/")


async def test_without_a_prefix_the_place_is_at_the_top(bucket):
    kept = BucketOutputs(attrs.evolve(bucket, prefix=""), "secret")
    (output,) = (await kept.save(LEASE, PICTURE)).outputs
    assert output.key.count("/") == 2
    assert (await fetch(await link_to(kept, output))).body == PNG
    assert await listed(kept, LATER) == [output.key]


# -- while it is down


async def test_a_server_error_is_tried_again_a_few_times(bucket, httpserver):
    kept = BucketOutputs(attrs.evolve(bucket, endpoint=httpserver.url_for("")), "secret")
    answers = [503, 500, 200]

    def answer(request):
        return Response(status=answers.pop(0), headers={"ETag": '"x"'})

    httpserver.expect_request(re.compile(".*"), method="PUT").respond_with_handler(answer)
    await kept.save(LEASE, PICTURE)
    assert answers == []
    answers += [503] * 20
    with pytest.raises(OutputStoreUnavailable):
        await kept.save(LEASE, PICTURE)
    assert len(answers) == 16


@pytest.mark.parametrize("change", [{"name": "not-there"}, {"endpoint": "http://127.0.0.1:9"}])
async def test_what_is_wrong_is_told_without_a_key_or_a_link(bucket, change):
    kept = BucketOutputs(attrs.evolve(bucket, **change), "secret")
    with pytest.raises(OutputStoreUnavailable) as raised:
        await kept.probe()
    assert str(raised.value).endswith(("NoSuchBucket.", "error sending request."))
    for hidden in ("hidden", "Signature", "http://"):
        assert hidden not in str(raised.value)
    assert raised.value.__cause__ is None


async def test_while_the_bucket_is_down_outputs_are_kept_on_the_disk(down, local, folder):
    (output,) = (await down.save(LEASE, PICTURE)).outputs
    assert (folder / output.key).read_bytes() == PNG
    assert await link_to(down, output) == await link_to(local, output)
    await down.delete([output])
    assert not (folder / output.key).exists()


async def test_a_bucket_that_failed_is_left_alone_for_a_minute(down, bucket, monkeypatch):
    await down.save(LEASE, PICTURE)
    down.bucket = BucketOutputs(bucket, "secret")  # it is back
    (output,) = (await down.save(LEASE, PICTURE)).outputs
    assert not output.key.startswith("s3:")
    down._paused_until -= 60
    (output,) = (await down.save(LEASE, PICTURE)).outputs
    assert output.key.startswith("s3:")


async def test_where_both_fail_the_caller_is_told_to_save_again(down, folder):
    folder.write_text("no folder")
    with pytest.raises(OutputStoreUnavailable, match="folder"):
        await down.save(LEASE, PICTURE)


async def test_outputs_from_before_the_bucket_stay_on_the_disk(bucket, local):
    (old,) = (await local.save(LEASE, PICTURE)).outputs
    both = BucketWithFallback(BucketOutputs(bucket, "secret"), local)
    (new,) = (await both.save(LEASE, PICTURE)).outputs
    assert await listed(both, LATER) == sorted([old.key, new.key])
    first, second = await both.links([old, new], now=1000, expires_at=2000)
    assert first.startswith("/files/")
    assert (await fetch(second)).body == PNG
    await both.delete([old, new])
    assert await listed(both, LATER) == []
