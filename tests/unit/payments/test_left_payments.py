"""Open payments whose method the leader may lack: every node asks about old ones."""

import asyncio

from gateway.contracts.payment_methods import MethodProof, Taken
from gateway.domain import PaymentState
from gateway.payments import MethodSettlements
from gateway.store import SqliteStore
from gateway_testing.facts import NOW, new_task
from tests.migrated_databases import put_database
from tests.patience import until


class Vouchers:
    name = "voucher"

    def __init__(self):
        self.asked = []

    async def settle(self, payment):
        self.asked.append(payment.task_id)
        return Taken("redeemed")


async def test_a_node_that_does_not_lead_asks_about_old_payments_only(tmp_path):
    vouchers, now = Vouchers(), [NOW]
    async with SqliteStore(put_database(tmp_path / "gateway.db")) as store:
        for number, age_s in enumerate((0, 61)):
            proof = MethodProof(
                key=f"serial-{number}", data=b"x", value_units=50_000, payer=f"voucher {number}"
            )
            task = new_task(id=f"aged-{age_s}", created_at=NOW - age_s)
            await store.methods.reserve(task, "voucher", proof, None, held_file_bytes=10**6)
        settlements = MethodSettlements(
            store, {"voucher": vouchers}, lambda: now[0], lambda: None, lambda _: None
        )
        settlements.timing = type(settlements.timing)(sweep_s=0.05)
        settlements.start(lambda: False)

        async def state(task_id):
            return (await store.task(task_id)).payment.state

        async def is_settled():
            return await state("aged-61") is PaymentState.SETTLED

        await until(is_settled)
        await asyncio.sleep(0.2)
        assert vouchers.asked == ["aged-61"]
        now[0] += 61
        await until(lambda: "aged-0" in vouchers.asked)
        await settlements.close(grace_s=60)
