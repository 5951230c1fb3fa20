"""Outputs on disk, copied to a bucket before a gateway gets several nodes."""

import attrs
import pytest

from gateway.contracts.outputs import OutputStoreUnavailable
from gateway.domain import StoredResult
from gateway_bucket.outputs import BucketOutputs
from gateway_nodes.store_migration.to_bucket import carry, local_outputs
from tests.conftest import PNG
from tests.unit.outputs.conftest import LEASE, PICTURE


@pytest.fixture
def there(bucket):
    return BucketOutputs(bucket, "secret")


async def test_a_result_shows_the_copies_and_loses_nothing(local, there):
    kept = await local.save(LEASE, PICTURE)
    carried = await carry(kept, local, there)
    (output,) = carried.result.outputs
    assert (carried.copied, carried.lost) == (1, 0)
    assert await there.read(output) == PNG
    assert attrs.evolve(output, key=kept.outputs[0].key) == kept.outputs[0]
    assert await local.read(kept.outputs[0]) == PNG
    assert local_outputs(carried.result) == []


async def test_what_is_in_the_bucket_already_is_left_alone(local, there):
    kept = await there.save(LEASE, PICTURE)
    assert (await carry(kept, local, there)).result == kept


async def test_a_cut_off_run_is_repeated(local, there):
    kept = await local.save(LEASE, PICTURE)
    first = await carry(kept, local, there)
    assert await carry(kept, local, there) == first


async def test_a_file_that_is_gone_or_damaged_is_told_and_not_passed_on(local, there, folder):
    gone = await local.save(LEASE, PICTURE)
    bent = await local.save(LEASE.replace("1", "2"), PICTURE)
    (folder / gone.outputs[0].key).unlink()
    (folder / bent.outputs[0].key).write_bytes(b"other")
    both = StoredResult(outputs=gone.outputs + bent.outputs)
    carried = await carry(both, local, there)
    assert (carried.copied, carried.lost, carried.result) == (0, 2, both)


async def test_a_bucket_that_is_down_stops_it(local, dead_bucket, monkeypatch):
    kept = await local.save(LEASE, PICTURE)
    monkeypatch.setattr("gateway_bucket.outputs._RETRY", {"max_retries": 0})
    with pytest.raises(OutputStoreUnavailable, match="cannot take outputs"):
        await carry(kept, local, BucketOutputs(dead_bucket, "secret"))
