"""Each COMMIT loses its answer, and the database is away for longer than the pool waits.

Afterwards each payment is one completed task whose files can be fetched, or one refund.
"""

import pytest

from gateway import ContentPolicy
from gateway.store import tasks
from tests.conftest import Payer
from tests.proof.lost_answers.scene import PRICE

# The writes of a task and its webhook.
_OF_TASKS = {"lease_due", "take_events", "_end"}
_SALES = {
    "buy_x402": {"reserve", "begin_settling_each", "settle", "complete", *_OF_TASKS},
    "buy_direct": {"accept_direct", "complete", *_OF_TASKS},
    "buy_without_key": {"accept_direct", "complete", *_OF_TASKS},
}
# An operator's decision is `act`.
_REFUND = {"reserve", "begin_settling_each", "settle", "fail", "act", "begin", "end", *_OF_TASKS}

# The sweep over a refund makes all writes of the first sale but `complete`, which the second makes.
_FLOWS = [pytest.param("buy_x402", marks=pytest.mark.full), "buy_direct", "buy_without_key"]
reached = pytest.mark.parametrize("reaches_server", [True, False], ids=["kept", "lost"])


async def sweep(scene, trial, expected, reaches_server):
    """Run a trial without losses, then one for each write that it made."""
    scene.proxy.reaches_server = reaches_server
    scene.writes.clear()
    await trial()
    assert expected <= scene.writes
    # The leader's lease is renewed every few seconds, so it may not come.
    for name in sorted(scene.writes - {"renew"}):
        scene.lose(name)
        await trial()
        if name in expected:
            assert (scene.losing, scene.proxy.losses) == ("", 0), name


def make_trial(scene, chain, flow):
    """Return a trial: a sale by this flow, whose buyer fetches the files at the end."""

    async def trial():
        payer, before = Payer(chain), scene.wallet()
        task_id = await getattr(scene, flow)(payer)
        task = await scene.ended(task_id)
        assert task["status"] == "completed"
        await scene.was_told(task_id, "task.completed")
        await scene.is_quiet()
        assert all(await scene.fetch_outputs(task))
        assert scene.wallet() == before + PRICE

    return trial


@pytest.mark.parametrize("flow", _FLOWS)
@reached
async def test_a_sale_is_one_task_whose_files_can_be_fetched(scene, chain, flow, reaches_server):
    await sweep(scene, make_trial(scene, chain, flow), _SALES[flow], reaches_server)


@pytest.mark.parametrize(
    "reaches_server", [pytest.param(True, marks=pytest.mark.full), False], ids=["kept", "lost"]
)
async def test_a_failed_task_is_refunded_once(scene, chain, provider, reaches_server):
    async def trial():
        payer, before = Payer(chain), scene.wallet()
        # A task whose lease was lost is tried again.
        provider.script = [ContentPolicy("No boats.")] * 4
        task_id = await scene.buy_x402(payer)
        task = await scene.ended(task_id)
        assert (task["status"], task["refund"]["state"]) == ("failed", "refund_due")
        await scene.approve_refund(task_id)
        await scene.was_told(task_id, "refund.sent")
        await scene.is_quiet()
        assert chain.usdc_balance(payer.account.address) == 100_000_000
        assert scene.wallet() == before + PRICE

    await sweep(scene, trial, _REFUND, reaches_server)


async def test_a_repeat_that_is_read_as_a_lost_lease_is_caught(scene, chain, monkeypatch):
    """The sweep finds a `complete` that does not know its own result again."""
    monkeypatch.setattr(tasks, "_has_result", lambda *_: False)
    scene.lose("complete")
    with pytest.raises(AssertionError, match="is gone"):
        await make_trial(scene, chain, "buy_x402")()
