"""A real S3 server in a process of its own, and the three kinds of artifacts over it."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator

import attrs
import pytest

from gateway import Output, Result
from gateway.contracts.outputs import Kept, OutputStoreUnavailable
from gateway.outputs import BucketOutputs, BucketWithFallback, DiskOutputs
from gateway.settings.bucket import Bucket
from tests.conftest import PNG

PICTURE = Result(outputs=(Output(data=PNG, media_type="image/png", width=1, height=1),))
LEASE = "task-1-0123456789abcdef"
_SERVE = "from moto.server import main; main()"
_START_S = 60.0


@attrs.frozen
class Answer:
    """What an HTTP client without a key of ours got."""

    status: int
    headers: dict
    body: bytes


async def fetch(url: str, method: str = "GET", **headers: str) -> Answer:
    return await asyncio.to_thread(_fetch, url, method, headers)


def _fetch(url: str, method: str, headers: dict) -> Answer:
    asked = urllib.request.Request(url, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return Answer(answer.status, dict(answer.headers.items()), answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, dict(error.headers.items()), error.read())


@pytest.fixture(autouse=True)
def _no_keys_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "BUCKET_NAME"))]:
        monkeypatch.delenv(name)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """Run an S3 server; gives its address."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()


@pytest.fixture
def bucket(s3: str) -> Bucket:
    """An empty bucket."""
    name = f"outputs-{uuid.uuid4().hex}"
    signed_for = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"
    made = _fetch(f"{s3}/{name}", "PUT", {"Authorization": f"{signed_for}, Signature=0"})
    assert made.status == 200
    return Bucket(
        name=name,
        prefix="shop/outputs",
        endpoint=s3,
        region="us-east-1",
        is_in_host=False,
        access_key_id="key",
        secret_access_key="hidden",
    )


@pytest.fixture
def dead_bucket(bucket: Bucket) -> Bucket:
    """A bucket whose server does not answer."""
    return attrs.evolve(bucket, endpoint=f"http://127.0.0.1:{free_port()}")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "outputs"


@pytest.fixture
def local(folder) -> DiskOutputs:
    return DiskOutputs(folder, "secret")


@pytest.fixture(params=["disk", "bucket", "bucket first", "bucket down"])
def artifacts(request, local):
    """Every kind of artifacts."""
    if request.param == "disk":
        return local
    down = request.param == "bucket down"
    bucket = BucketOutputs(request.getfixturevalue("dead_bucket" if down else "bucket"), "secret")
    return bucket if request.param == "bucket" else BucketWithFallback(bucket, local)


async def found(artifacts, before: float) -> list[Kept]:
    """List what is old, as far as the places answer."""
    kept = []
    with contextlib.suppress(OutputStoreUnavailable):  # the bucket that is down
        async for batch in artifacts.written_before(before):
            kept += batch
    return kept


async def listed(artifacts, before: float) -> list[str]:
    return sorted(kept.key for kept in await found(artifacts, before))
