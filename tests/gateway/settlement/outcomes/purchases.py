"""Purchases whose payment stays open, and their ends."""

import asyncio
import contextlib

from gateway.app import create_app
from gateway.tasks import TaskTiming
from gateway.web.front.current import EXTENSION
from tests.conftest import WALLET, Running, ScriptedPlugin
from tests.patience import until
from tests.waits import set_waits

PRICE = 20_000


async def buy(gateway, header, prompt="a boat"):
    return await gateway.client.post(
        "/api/x402/picture", json={"prompt": prompt}, headers={"X-PAYMENT": header}
    )


async def pay_directly(gateway, tx_hash, prompt="a boat"):
    return await gateway.client.post(
        "/api/proxy-generate", json={"slug": "picture", "prompt": prompt, "txHash": tx_hash}
    )


async def bought(gateway, header) -> str:
    answer = await buy(gateway, header)
    assert answer.status_code == 200, await answer.get_json()
    return (await answer.get_json())["taskId"]


async def shown(gateway, task_id) -> dict:
    return await (await gateway.client.get(f"/api/task/{task_id}")).get_json()


async def held(gateway, task_id):
    task = await shown(gateway, task_id)
    assert (task["status"], task["done"]) == ("queued", False)
    assert task["payment"]["state"] in ("reserved", "settling")
    assert task["decidedBy"] > task["createdAt"]


async def done(gateway, task_id) -> dict:
    """Return the task once it is done, even on a slow machine."""
    return await gateway.wait(task_id)


async def ended_as_one_task(gateway, chain, task_id, units=PRICE):
    task = await done(gateway, task_id)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == units
    assert sum((await gateway.services.store.counts())["tasks"].values()) == 1


def later(chain, clock, seconds):
    """Advance all clocks."""
    clock.offset_s += seconds
    chain.advance(seconds)


async def until_paid(chain, units=PRICE):
    """Return once the wallet has the money: a task may be answered before its own was mined."""
    await until(lambda: chain.usdc_balance(WALLET) == units)


async def until_waiting(chain, count):
    """Return `count` pending transactions: a task may be answered before its own was sent."""

    async def as_many():
        found = waiting(chain)
        return found if len(found) >= count else None

    return await until(as_many)


def waiting(chain):
    with chain.node.lock:
        return list(chain.node.pool.waiting.values())


def before_ours_is_sent_again(chain):
    """Keep the gateway from resending a dropped transaction."""
    return chain.node.lock


async def crash(gateway) -> None:
    """Abandon a gateway like kill -9: from now on it writes nothing and sends nothing."""
    store = gateway.services.store
    store._writer._task.cancel()
    store._writer._task = None
    names = ("settle", "worker-", "task-", "lease-", "retention", "warm-up")
    doomed = [task for task in asyncio.all_tasks() if task.get_name().startswith(names)]
    for task in doomed:
        task.cancel()
    await asyncio.gather(*doomed, return_exceptions=True)
    await store._writer._connection.close()
    await store._reader.close()
    await gateway.services.chain.close()


@contextlib.asynccontextmanager
async def abandoned(settings, provider, clock):
    """Yield a gateway that ends in a crash."""
    app = create_app(settings, plugins=[ScriptedPlugin(provider)], now=clock)
    await app.startup()
    gateway = Running(app, app.test_client(), app.extensions[EXTENSION])
    gateway.services.workers.resources.timing = TaskTiming(backoff_s=0.02)
    set_waits(gateway.services)
    gateway.services.lifecycle.answered.set()
    try:
        yield gateway
    finally:
        await crash(gateway)
        with contextlib.suppress(Exception):
            await app.shutdown()


async def never(*_):
    await asyncio.Event().wait()
