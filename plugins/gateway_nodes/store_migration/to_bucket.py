"""Copies outputs from this machine's disk to the bucket, which every node can reach."""

import asyncio
import hashlib

import attrs

from gateway.contracts.outputs import OutputStoreUnavailable
from gateway.domain import Output, StoredOutput, StoredResult
from gateway.outputs.disk import DiskOutputs
from gateway_bucket.outputs import SCHEME, BucketOutputs


@attrs.frozen(kw_only=True)
class Carried:
    """A result after copying its outputs, with counts."""

    # It refers to the copies.
    result: StoredResult

    copied: int

    # Missing or damaged files; the result still refers to them.
    lost: int


def local_outputs(result: StoredResult) -> list[StoredOutput]:
    """Return the outputs of a result that are on disk."""
    return [output for output in result.outputs if not output.key.startswith(SCHEME)]


async def carry(result: StoredResult, disk: DiskOutputs, bucket: BucketOutputs) -> Carried:
    """Copy the outputs on disk, keeping the files. Safe to repeat.

    Raises `OutputStoreUnavailable` if the disk cannot be read or the bucket cannot be written.
    """
    moved: dict[str, StoredOutput] = {}
    local = local_outputs(result)
    for output in local:
        data = await _read(output, disk)
        if data is not None:
            copied = await bucket.put(output.key, Output(data=data, media_type=output.media_type))
            moved[output.key] = attrs.evolve(output, key=copied.key)
    outputs = tuple(moved.get(output.key, output) for output in result.outputs)
    return Carried(
        result=attrs.evolve(result, outputs=outputs),
        copied=len(moved),
        lost=len(local) - len(moved),
    )


async def _read(output: StoredOutput, disk: DiskOutputs) -> bytes | None:
    try:
        data = await disk.read(output)
    except OutputStoreUnavailable as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    digest = await asyncio.to_thread(hashlib.sha256, data)
    return data if digest.hexdigest() == output.sha256 else None
