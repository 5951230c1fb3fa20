"""A claim costs the same however many wait: it follows the index of what is due."""

import json

from gateway.store.tasks import LEASABLE


async def test_a_claim_reads_in_the_order_of_the_index_and_sorts_nothing(shop):
    sql = f"EXPLAIN QUERY PLAN SELECT id FROM {LEASABLE} AND due_at <= ? ORDER BY due_at LIMIT ?"
    plan = " ".join(row[3] for row in await shop.store._rows(sql, json.dumps(["x"]), 0.0, 4))
    assert "USING INDEX tasks_due" in plan
    assert "TEMP B-TREE" not in plan
