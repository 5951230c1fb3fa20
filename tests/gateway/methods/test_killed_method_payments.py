"""kill -9 between the steps of a payment by another method."""

import asyncio
import contextlib
import multiprocessing
import os
import signal

from gateway.contracts.payment_methods import MethodProof, Taken
from gateway.domain import PaymentState
from gateway.store import SqliteStore
from gateway_testing.facts import NOW, new_task
from tests.migrated_databases import put_database

PROOF = MethodProof(
    key="serial-1", data=b"\x00signed", value_units=50_000, payer="voucher serial-1"
)
TAKEN = Taken("redeemed 1")
STATES = (PaymentState.RESERVED, PaymentState.SETTLING, PaymentState.SETTLED)


async def pay(store, task_id="bought"):
    return await store.methods.reserve(
        new_task(id=task_id), "voucher", PROOF, None, held_file_bytes=10**6
    )


def _die_after_each_step(paths):
    """Do T1 in one database, T1 and T2 in the next, all three in the last; then die."""

    async def work():
        async with contextlib.AsyncExitStack() as opened:
            for steps, path in enumerate(paths, start=1):
                store = await opened.enter_async_context(SqliteStore(path))
                task = await pay(store)
                if steps > 1:
                    await store.methods.begin_settling(task.payment.id, now=NOW)
                if steps > 2:
                    await store.methods.close(task.payment.id, TAKEN, now=NOW + 1)
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(work())


async def test_after_a_kill_the_same_question_is_asked_or_nothing_is(tmp_path, subtests):
    paths = [put_database(tmp_path / str(step) / "gateway.db") for step in (1, 2, 3)]
    dying = multiprocessing.get_context("spawn").Process(target=_die_after_each_step, args=(paths,))
    dying.start()
    await asyncio.to_thread(dying.join)
    assert dying.exitcode == -signal.SIGKILL
    for path, state in zip(paths, STATES, strict=True):
        with subtests.test(state.value):
            await _begins_again(path, state)


async def _begins_again(path, state):
    async with SqliteStore(path) as store:
        assert (await store.task("bought")).payment.state is state
        # A repeat of the same write finds its own task; another purchase finds the proof claimed.
        assert (await pay(store)).id == "bought"
        assert await pay(store, "again") is None
        waiting = await store.methods.open_payments()
        expected = [] if state is PaymentState.SETTLED else ["bought"]
        assert [one.asked.task_id for one in waiting] == expected
        for one in waiting:
            assert one.asked.data == PROOF.data
            assert await store.methods.begin_settling(one.payment.id, now=NOW)
            assert await store.methods.close(one.payment.id, TAKEN, now=NOW)
        assert len(await store.queue.lease(9, lease_s=60, now=NOW + 9)) == 1
