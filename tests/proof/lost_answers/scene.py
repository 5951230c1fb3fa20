"""A gateway on PostgreSQL that loses the answer of one COMMIT, and its database for a while."""

import asyncio
import contextlib
import os
import socket
import time
from urllib.parse import urlsplit

import attrs
import pytest

from gateway.errors import StoreUnavailable
from gateway_nodes.postgres.pool import Pool
from gateway_operator.actions.refunds import approve, choice_of
from gateway_operator.audit_log import Actor
from gateway_operator.state import Operator
from gateway_webhooks import Deliveries, DeliveryTiming
from tests.conftest import WALLET, Payer, running
from tests.patience import PATIENCE_S, until
from tests.plugins.gateway_webhooks.app.receiver import Receiver

# How long the pool waits for the database, and how long that is away. In production 5 s and more.
POOL_WAITS_S = 0.2
OUTAGE_S = 0.9
PRICE = 20_000
_UNAVAILABLE = 503
_PAUSE_S = 0.1


@attrs.define
class Scene:
    """A gateway, its lossy way to the database, and the receiver of its webhooks."""

    gateway: object
    chain: object
    proxy: object
    receiver: Receiver
    # The names of the writes so far.
    writes: set[str] = attrs.field(factory=set)
    # The write whose COMMIT loses its answer; empty once that has happened.
    losing: str = ""

    def lose(self, name: str) -> None:
        """Lose the answer of the next COMMIT of the write with this name."""
        self.losing = name
        resources = self.gateway.services.workers.resources
        # A lost lease must expire soon. Otherwise none is extended before a write is repeated,
        # which would end the attempt.
        lease_s = 4.0 if name == "lease_due" else 240.0
        resources.timing = attrs.evolve(
            resources.timing,
            lease_s=lease_s,
            extend_s=lease_s / 4,
            idle_s=0.2,
            dispatch_pause_s=0.1,
            write_pauses_s=(0.3,) * 40,
        )

    def watch(self, raw, name: str) -> None:
        """Note a write on a connection; called before it begins."""
        self.writes.add(name)
        if name == self.losing:
            self.losing = ""
            with socket.socket(fileno=os.dup(raw.fileno())) as client:
                self.proxy.only_port = client.getsockname()[1]
            self.proxy.losses = 1

    @property
    def callback(self) -> str:
        return f"http://127.0.0.1:{self.receiver.port}/hook"

    async def request(self, method: str, path: str, **fields) -> dict:
        """Send a request again until the gateway has a database; returns a 200's JSON."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer = await self.gateway.client.open(path, method=method, **fields)
                if answer.status_code != _UNAVAILABLE:
                    body = await answer.get_json()
                    assert answer.status_code == 200, body
                    return body
                await asyncio.sleep(_PAUSE_S)

    async def buy_x402(self, payer: Payer) -> str:
        body = {"prompt": "a boat", "callbackUrl": self.callback}
        headers = {"X-PAYMENT": payer.header()}
        sold = await self.request("POST", "/api/x402/picture", json=body, headers=headers)
        return sold["taskId"]

    async def buy_direct(self, payer: Payer, *, has_key: bool = True) -> str:
        tx_hash = payer.transfer(PRICE)
        body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
        body["callbackUrl"] = self.callback
        headers = {"Idempotency-Key": tx_hash} if has_key else {}
        sold = await self.request("POST", "/api/proxy-generate", json=body, headers=headers)
        return sold["taskId"]

    async def buy_without_key(self, payer: Payer) -> str:
        """Buy directly; a second request would find the transaction used."""
        return await self.buy_direct(payer, has_key=False)

    async def ended(self, task_id: str) -> dict:
        """Return the task once it is done."""

        async def done() -> dict | None:
            task = await self.request("GET", f"/api/task/{task_id}")
            return task if task["done"] else None

        return await until(done, _PAUSE_S)

    async def fetch_outputs(self, task: dict) -> list[bytes]:
        """Return the bytes of every output; fails if one cannot be fetched."""
        found = []
        for output in task["result"]["outputs"]:
            url = urlsplit(output["url"])
            answer = await self.gateway.client.get(f"{url.path}?{url.query}")
            assert answer.status_code == 200, f"the file of {task['taskId']} is gone"
            found.append(await answer.get_data())
        return found

    async def was_told(self, task_id: str, kind: str) -> None:
        """Return once the buyer's webhook has received an event of the task."""
        await until(
            lambda: any(
                (one.event["type"], one.event["data"]["taskId"]) == (kind, task_id)
                for one in self.receiver.delivered
            )
        )

    async def approve_refund(self, task_id: str) -> None:
        """Approve a refund as an operator, again until the gateway has a database."""
        desk = self.gateway.services.find(Operator).desk
        actor = Actor(door="api", name="sweep", address="192.0.2.1", request=f"refund {task_id}")

        async def approved() -> bool:
            with contextlib.suppress(StoreUnavailable):
                case = await desk.store.refunds.case(task_id)
                await approve(desk, actor, [choice_of(case)], reason="a sweep")
                return True
            return False

        await until(approved, _PAUSE_S)

    async def is_quiet(self) -> None:
        """Wait until no task, payment, refund, event or webhook is open, and no worker works."""
        webhooks = self.gateway.services.find(Deliveries).queue

        async def quiet() -> bool:
            store = self.gateway.services.store
            try:
                counts = await store.counts()
                waits = await store.events.backlogs()
                # Its row outlives the request that the receiver has seen.
                is_sending = await webhooks.earliest() is not None
            except StoreUnavailable:
                return False
            open_tasks = {"held", "queued", "processing"} & set(counts["tasks"])
            open_payments = {"reserved", "settling", "refunding"} & set(counts["payments"])
            is_working = self.gateway.services.workers.running
            return not (open_tasks or open_payments or waits or is_sending or is_working)

        await until(quiet, _PAUSE_S)

    def wallet(self) -> int:
        return self.chain.usdc_balance(WALLET)


@contextlib.asynccontextmanager
async def staged(settings, provider, chain, proxy, receiver):
    """Run a gateway whose store is reached by the proxy; `settings` name its database."""
    async with running(settings, provider) as started:
        services = started.services
        services.find(Deliveries).timing = DeliveryTiming(pauses_s=(0.1,) * 9, poll_s=0.2)
        services.events.poll_s = 0.2
        # Transfers count from the next second on.
        await until(lambda: int(time.time()) > int(services.payments.born_at))
        chain.mine()
        await services.payments.cutoff_block()
        proxy.outage_s = OUTAGE_S
        scene = Scene(started, chain, proxy, receiver)
        scene.lose("")
        transact = Pool._transact

        def watched(pool, call, locks):
            scene.watch(pool._connection()._raw, call.function.__name__)
            return transact(pool, call, locks)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Pool, "_transact", watched)
            yield scene
