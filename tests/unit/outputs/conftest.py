"""Outputs on disk, and a helper to list any output store."""

import contextlib
import os

import pytest

from gateway import Output, Result
from gateway.contracts.outputs import OutputStoreUnavailable, StoredFile
from gateway.outputs import DiskOutputs
from tests.conftest import PNG

PICTURE = Result(outputs=(Output(data=PNG, media_type="image/png", width=1, height=1),))
LEASE = "task-1-0123456789abcdef"


@pytest.fixture(autouse=True)
def _no_keys_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "BUCKET_NAME"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "outputs"


@pytest.fixture
def local(folder) -> DiskOutputs:
    return DiskOutputs(folder, "secret")


async def found(output_store, before: float) -> list[StoredFile]:
    """List old outputs, as far as the places respond."""
    kept = []
    with contextlib.suppress(OutputStoreUnavailable):  # the bucket that is down
        async for batch in output_store.written_before(before):
            kept += batch
    return kept


async def listed(output_store, before: float) -> list[str]:
    return sorted(kept.key for kept in await found(output_store, before))
