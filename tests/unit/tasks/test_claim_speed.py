"""Leasing a task costs the same however many wait: it uses the index of due tasks."""

from gateway.store.leases import leasable


async def test_a_claim_reads_in_the_order_of_the_index_and_sorts_nothing(shop):
    plan = await shop.store._long_read(explain)
    assert "USING INDEX tasks_due" in plan
    assert "TEMP B-TREE" not in plan


def explain(db) -> str:
    due = f"SELECT id {leasable(db, ['x'])} AND due_at <= ? ORDER BY due_at LIMIT ?"
    return " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {due}", ("x", 0.0, 4)))
