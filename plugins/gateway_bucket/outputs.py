"""Outputs in an S3-compatible bucket, which verifies the links itself."""

import asyncio
import contextlib
import hashlib
import importlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway.contracts.outputs import OutputStoreUnavailable, StoredFile
from gateway.domain import Output, Result, StoredOutput, StoredResult
from gateway.errors import NotFound
from gateway.outputs.disk import describe_output
from gateway.outputs.keys import MediaTypes, is_ours, outputs_of, task_of
from gateway_bucket.settings import Bucket

# The prefix of an output's key if it is in a bucket.
SCHEME = "s3:"
# The longest validity that S3 allows for a signed link.
_LINK_S = 7 * 86_400
# Objects per page of a listing.
_BATCH = 100
_REQUEST_S = timedelta(seconds=60)
_CONNECT_S = timedelta(seconds=5)
_RETRY = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
_CODE = re.compile(r"<Code>(\w+)</Code>")


class BucketOutputs:
    """Outputs below one prefix of a bucket. Implements `contracts.OutputStore`.

    The prefix is unique to the installation, so that several can share a bucket: each deletes
    outputs that its own database does not know. obstore is imported at first use.
    """

    def __init__(self, bucket: Bucket, secret: str, types: MediaTypes | None = None) -> None:
        own = hashlib.sha256(b"outputs of " + secret.encode()).hexdigest()[:16]
        self._types = types or MediaTypes()
        self._bucket = bucket
        self._prefix = f"{bucket.prefix}/{own}" if bucket.prefix else own
        self._obstore: Any = None
        self._store: Any = None

    async def save(self, folder: str, result: Result) -> StoredResult:
        """Store outputs durably with their hashes; text becomes a separate output."""
        stored = [
            await self.put(self._types.key_of(folder, number, output), output)
            for number, output in enumerate(outputs_of(result))
        ]
        return StoredResult(outputs=tuple(stored), text=result.text)

    async def put(self, name: str, output: Output) -> StoredOutput:
        """Store one output under a key of `MediaTypes.key_of`, and return its database record.

        Raises `OutputStoreUnavailable`.
        """
        path = f"{self._prefix}/{name}"
        async with self._open_bucket("take outputs") as (obstore, store):
            # No multipart upload: the parts of an aborted one would stay, and no listing shows
            # them.
            await obstore.put_async(
                store,
                path,
                output.data,
                attributes=self._types.headers_of(name),
                use_multipart=False,
            )
        return await asyncio.to_thread(describe_output, SCHEME + path, output)

    async def links(
        self, outputs: Sequence[StoredOutput], *, now: float, expires_at: float
    ) -> list[str]:
        """Return a link to the bucket for each output.

        It is valid until `expires_at`, but at most for the 7 days that S3 allows.
        """
        lasts = timedelta(seconds=int(max(min(expires_at - now, _LINK_S), 1)))
        async with self._open_bucket("sign links") as (obstore, store):
            # Signing makes no request and takes 10 µs.
            return [obstore.sign(store, "GET", _path_of(output), lasts) for output in outputs]

    def open(self, key: str, *, expires: str, signature: str, now: float) -> Path:  # noqa: ARG002
        """Raise `NotFound`: links lead to the bucket, not to the gateway."""
        raise NotFound("No such file. Poll the task for a fresh link.")

    async def read(self, output: StoredOutput) -> bytes:
        """Return an output's bytes."""
        async with self._open_bucket("give outputs back") as (obstore, store):
            answer = await obstore.get_async(store, _path_of(output))
            return bytes(await answer.bytes_async())

    async def delete(self, outputs: Sequence[StoredOutput | StoredFile]) -> None:
        """Delete outputs, ignoring those that are already gone."""
        async with self._open_bucket("delete outputs") as (obstore, store):
            for output in outputs:
                # Some stores report an object that is already gone.
                with contextlib.suppress(FileNotFoundError):
                    await obstore.delete_async(store, _path_of(output))

    async def written_before(self, before: float) -> AsyncIterator[list[StoredFile]]:
        """Yield outputs written before a time (Unix seconds), in batches."""
        async with self._open_bucket("list outputs") as (obstore, store):
            async for batch in obstore.list(store, prefix=self._prefix, chunk_size=_BATCH):
                old = [one["path"] for one in batch if one["last_modified"].timestamp() < before]
                yield [
                    StoredFile(key=SCHEME + path, task_id=task_of(path), is_shared=True)
                    for path in old
                    if is_ours(path.rpartition("/")[2])
                ]

    async def probe(self) -> str:
        """Write, read and delete a small object; returns a description of the bucket.

        Raises `OutputStoreUnavailable`.
        """
        (kept,) = (await self.save("check-outputs", Result(text="check"))).outputs
        data = await self.read(kept)
        await self.delete([kept])
        if data != b"check":
            raise OutputStoreUnavailable("The bucket returns other bytes than it got.")
        return f"bucket {self._bucket}"

    @contextlib.asynccontextmanager
    async def _open_bucket(self, doing: str) -> AsyncIterator[tuple[Any, Any]]:
        """Yield (obstore, its store of the bucket).

        Errors become `OutputStoreUnavailable`, without a key or a link in their text; `doing`
        completes "The bucket cannot …".
        """
        if self._store is None:
            self._obstore, self._store = await asyncio.to_thread(load_obstore, self._bucket)
        errors = (self._obstore.exceptions.BaseError, OSError, ValueError)
        with _translate_errors(f"The bucket {self._bucket} cannot {doing}", errors):
            yield self._obstore, self._store


@contextlib.contextmanager
def _translate_errors(what: str, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise OutputStoreUnavailable(f"{what}: {reason_of(error)}.") from None


def reason_of(error: Exception) -> str:
    """Return a store's error code, or the end of obstore's message; never a key."""
    code = _CODE.search(str(error))
    return code[1] if code else str(error).rpartition(" - ")[2].partition("\n")[0][:100]


def _path_of(output: StoredOutput | StoredFile) -> str:
    return output.key.removeprefix(SCHEME)


def load_obstore(bucket: Bucket) -> tuple[Any, Any]:
    """Import obstore and open the bucket: 9 MB and 50 ms, so call this in a thread."""
    obstore = importlib.import_module("obstore")
    store = importlib.import_module("obstore.store").S3Store(
        bucket.name,
        # Use this option, and pass the key as a function: otherwise AWS_ENDPOINT_URL_S3 and
        # AWS_SESSION_TOKEN in the environment override the arguments.
        aws_endpoint_url_s3=bucket.base_url,
        credential_provider=_BucketKey(bucket),
        region=bucket.region,
        virtual_hosted_style_request=bucket.is_in_host,
        # Not every store supports bulk deletion.
        disable_bulk_delete=True,
        client_options={
            "allow_http": bucket.endpoint.startswith("http:"),
            "timeout": _REQUEST_S,
            "connect_timeout": _CONNECT_S,
        },
        retry_config=_RETRY,
    )
    return obstore, store


class _BucketKey:
    def __init__(self, bucket: Bucket) -> None:
        self._key = {
            "access_key_id": bucket.access_key_id,
            "secret_access_key": bucket.secret_access_key,
            "expires_at": None,
        }

    def __call__(self) -> dict[str, Any]:
        return self._key
