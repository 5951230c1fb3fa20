"""Unjudged transactions are found by their index, however many were sent."""

import pytest

from gateway.store import SqliteStore
from tests.migrated_databases import put_database


@pytest.fixture
async def plans(tmp_path):
    """The payers' records of an empty store that record the plan of each query, and the plans."""
    found = []
    async with SqliteStore(put_database(tmp_path / "gateway.db")) as store:

        def plan(db, query, *values):
            found.append([row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query}", values)])
            return db.execute(query, values).fetchall()

        async def rows(query, *values):
            # It finds a row, so that it continues.
            return await store._long_read(plan, query, *values) or ["something"] * (len(found) == 1)

        store.payers._rows = rows
        yield store.payers, found


async def test_a_look_reads_no_transaction_that_is_judged(plans):
    payers, found = plans
    await payers.unjudged()
    await payers.unjudged_batches()
    assert len(found) == 3
    for plan in found:
        scans = [step for step in plan if step.startswith("SCAN")]
        assert all("unjudged" in step for step in scans), plan
