"""A backup tested elsewhere with the same settings deletes none of our outputs."""

import time

from gateway.outputs import retention
from gateway.store import SqliteStore
from gateway_bucket.outputs import BucketOutputs
from tests.gateway.outputs.test_retention import DAY, LATER, kept
from tests.unit.outputs.conftest import listed


async def test_a_copy_of_the_database_does_not_tidy_the_originals_outputs(tmp_path, bucket):
    """The secret for the place in the bucket is in the database, so a copy has it, too."""
    ours, copy = BucketOutputs(bucket, "secret"), BucketOutputs(bucket, "secret")
    async with (
        SqliteStore(tmp_path / "gateway.db") as store,
        SqliteStore(tmp_path / "copy.db") as restored,  # as of before the purchase
    ):
        _, output = await kept(store, ours, 1, expires_at=LATER)
        in_two_days = time.time() + 2 * DAY
        await retention.tidy(restored, copy, in_two_days)
        assert await listed(ours, LATER) == [output.key]
