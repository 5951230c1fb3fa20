"""A gateway with copies in a folder, or in a bucket of a real S3 server in another process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
import typed_settings as ts

from gateway_backups.place import place_of
from gateway_backups.schedule import Backups
from tests.plugins.gateway_bucket.app.conftest import bucket, dead_bucket, s3

__all__ = ["bucket", "dead_bucket", "s3"]


def in_bucket(settings, bucket, **changes):
    """Settings with copies in a bucket."""
    return settings.changed(
        backup_url=f"s3://{bucket.name}/shop/copies",
        backup_s3_endpoint=bucket.endpoint,
        backup_s3_region=bucket.region,
        backup_s3_access_key_id=ts.SecretStr(bucket.access_key_id),
        backup_s3_secret_access_key=ts.SecretStr(bucket.secret_access_key),
        **changes,
    )


@pytest.fixture(params=["folder", "bucket"])
def copied(request, settings, tmp_path):
    """Settings with copies in a folder, then in a bucket."""
    if request.param == "bucket":
        return in_bucket(settings, request.getfixturevalue("bucket"))
    return settings.changed(backup_url=f"file://{tmp_path}/copies")


@pytest.fixture
def in_folder(settings, tmp_path):
    """Settings with copies in a folder."""
    return settings.changed(backup_url=f"file://{tmp_path}/copies")


def backups_of(gateway, settings, now) -> Backups:
    """The copies of a running gateway, without their schedule."""
    return Backups(settings=settings, store=gateway.services.store, now=now)


def names_in(settings) -> list[str]:
    return [copy.name for copy in place_of(settings).copies()]


def leftovers(settings) -> list[str]:
    return [path.name for path in settings.data_dir.glob("gateway.db.copying-*")]


@contextlib.asynccontextmanager
async def cutting(endpoint: str, after_bytes: int) -> AsyncIterator[str]:
    """Forward connections to a server; cut each once a total of `after_bytes` was uploaded."""
    target = urlsplit(endpoint)
    sent = 0

    async def pass_up(reader, writer, both):
        nonlocal sent
        while data := await reader.read(65_536):
            sent += len(data)
            if sent > after_bytes:
                break
            writer.write(data)
            await writer.drain()
        for one in both:
            one.transport.abort()

    async def pass_down(reader, writer):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()

    async def serve(reader, writer):
        up_reader, up_writer = await asyncio.open_connection(target.hostname, target.port)
        with contextlib.suppress(OSError):
            await asyncio.gather(
                pass_up(reader, up_writer, (writer, up_writer)), pass_down(up_reader, writer)
            )

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
