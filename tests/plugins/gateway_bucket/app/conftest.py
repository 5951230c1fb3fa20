"""A real S3 server in a process of its own, and the three kinds of output stores."""

import asyncio
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

from gateway_bucket.fallback import BucketWithFallback
from gateway_bucket.outputs import BucketOutputs
from gateway_bucket.settings import Bucket
from tests.unit.outputs.conftest import _no_keys_of_others, folder, local

__all__ = ["_no_keys_of_others", "folder", "local"]
_SERVE = "from moto.server import main; main()"
_START_S = 60.0


@attrs.frozen
class Answer:
    """The response to an HTTP client without our key."""

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


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """Run an S3 server; yields its URL."""
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
    """A bucket whose server does not respond."""
    return attrs.evolve(bucket, endpoint=f"http://127.0.0.1:{free_port()}")


@pytest.fixture(params=["disk", "bucket", "bucket first", "bucket down"])
def output_store(request, local):
    """Every kind of output store."""
    if request.param == "disk":
        return local
    down = request.param == "bucket down"
    bucket = BucketOutputs(request.getfixturevalue("dead_bucket" if down else "bucket"), "secret")
    return bucket if request.param == "bucket" else BucketWithFallback(bucket, local)
