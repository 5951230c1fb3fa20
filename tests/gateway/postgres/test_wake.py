"""NOTIFY between nodes:

one node's commits are worked on, answered and sent by the others at once.
"""

import asyncio
import contextlib

import attrs
import psycopg
import pytest
import structlog

from gateway.contracts.nodes import WakeHandlers
from gateway.running.timing import Timing
from gateway.tasks import TaskTiming
from gateway.web.routes.tasks import poll_task
from gateway_nodes.postgres.store import PostgresStore
from gateway_nodes.postgres.wake import WakeTiming
from gateway_webhooks import Deliveries, DeliveryTiming
from tests.conftest import Payer, ScriptedProvider, running
from tests.patience import PATIENCE_S, until
from tests.plugins.gateway_webhooks.app.receiver import receiving

HOURS_S = 36_000.0
# No polling within a test.
NO_POLLS = Timing(poll_s=HOURS_S, fallback_poll_s=HOURS_S, stream_poll_s=HOURS_S)


@attrs.define
class Recorder:
    """The notifications that a node has received."""

    received: list[str] = attrs.field(factory=list)
    gaps: int = 0

    def listener(self) -> WakeHandlers:
        def note_gap() -> None:
            self.gaps += 1

        return WakeHandlers(
            on_queued=lambda: self.received.append("queued"),
            on_ended=self.received.append,
            on_gap=note_gap,
        )


def ask(url, statement, *values):
    with psycopg.connect(url, autocommit=True) as raw:
        cursor = raw.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def cut_listener(url, node):
    """End the session on which a node listens, like a network fault; returns how many."""
    return len(
        ask(
            url,
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE application_name = %s AND datname = current_database()""",
            f"{node} listens",
        )
    )


# -- the store


@pytest.fixture
async def pair(migrated_url):
    """Two listening stores on one database, with their notifications."""
    async with (
        PostgresStore(migrated_url, node="a") as one,
        PostgresStore(migrated_url, node="b") as two,
    ):
        recorder = (Recorder(), Recorder())
        for store, each in zip((one, two), recorder, strict=True):
            store.wakes.timing = WakeTiming(reconnect_s=0.05)
            store.wakes.start(each.listener())
        await until(lambda: one.wakes.is_live and two.wakes.is_live)
        yield (one, two), recorder


async def test_the_other_node_hears_and_the_own_does_not(pair):
    (one, two), (mine, others) = pair
    one.wakes.post_queued()
    one.wakes.post_ended("a" * 24)
    await until(lambda: len(others.received) == 2)
    two.wakes.post_ended("b" * 24)
    await until(lambda: mine.received)
    assert sorted(others.received) == ["a" * 24, "queued"]
    assert mine.received == ["b" * 24]
    # Each polled once when it began to listen.
    assert (mine.gaps, others.gaps) == (1, 1)


async def test_many_at_once_share_few_notifications_and_none_is_lost(pair, monkeypatch):
    (one, _), (_, others) = pair
    sent = []
    send = one.wakes._send

    async def note(channel, payload):
        sent.append(payload)
        await send(channel, payload)

    monkeypatch.setattr(one.wakes, "_send", note)
    ids = {f"{number:032x}" for number in range(1_000)}
    for task_id in ids:
        one.wakes.post_ended(task_id)
        one.wakes.post_queued()
    await until(lambda: len(others.received) >= 1_001)
    assert set(others.received) == ids | {"queued"}
    assert len(others.received) == 1_001
    assert len(sent) == 5
    assert max(map(len, sent)) < 8_000


async def test_a_listener_that_was_cut_is_back_and_looks_once(pair, migrated_url):
    (one, two), (_, others) = pair
    with structlog.testing.capture_logs() as lines:
        assert cut_listener(migrated_url, "b") == 1
        await until(lambda: others.gaps == 2)
    assert [line["event"] for line in lines] == ["wake.lost", "wake.restored"]
    assert two.wakes.is_live
    one.wakes.post_queued()
    await until(lambda: others.received == ["queued"])


async def test_after_a_standstill_the_node_listens_on_a_new_connection(pair, migrated_url):
    """The old one gives no sign, so only its replacement is seen by the server."""
    (one, two), (_, others) = pair
    find = """SELECT pid FROM pg_stat_activity
              WHERE application_name = %s AND datname = current_database()"""
    before = ask(migrated_url, find, "b listens")
    with structlog.testing.capture_logs() as lines:
        await two.renew_connections()
        await until(lambda: others.gaps == 2)
    assert lines == []
    await until(lambda: len(ask(migrated_url, find, "b listens")) == 1)
    assert ask(migrated_url, find, "b listens") != before
    one.wakes.post_queued()
    await until(lambda: others.received == ["queued"])


async def test_what_others_send_to_the_channel_harms_nothing(pair, migrated_url):
    (one, two), (_, others) = pair
    for payload in ("", " ", "x", "x  ", "\t\n", "\u00e9 \u00e9"):
        ask(migrated_url, "SELECT pg_notify('gateway', %s)", payload)
    one.wakes.post_queued()
    await until(lambda: "queued" in others.received)
    assert others.gaps == 1
    assert two.wakes.is_live


async def test_a_server_that_answers_no_more_is_taken_for_lost(pair):
    """The connection stays open and idle: only a query finds out."""
    (_, two), (_, others) = pair
    await two.wakes.close()
    two.wakes.timing = WakeTiming(quiet_s=0.01, answer_s=0.05, reconnect_s=0.01)
    connect, silent = two.wakes._connect, []

    async def connect_then_hang():
        raw = await connect()
        execute = raw.execute

        async def hang(statement, *more):
            if statement == b"SELECT 1" and not silent:
                silent.append(statement)
                await asyncio.sleep(HOURS_S)
            return await execute(statement, *more)

        raw.execute = hang
        return raw

    two.wakes._connect = connect_then_hang
    two.wakes.start(others.listener())
    await until(lambda: others.gaps == 3)
    assert silent


async def test_what_was_posted_at_the_end_is_sent(migrated_url):
    recorder = Recorder()
    async with PostgresStore(migrated_url, node="b") as two:
        two.wakes.start(recorder.listener())
        await until(lambda: two.wakes.is_live)
        async with PostgresStore(migrated_url, node="a") as one:
            one.wakes.post_ended("last")
        await until(lambda: recorder.received == ["last"])


# -- two gateways


@pytest.fixture
async def nodes(settings, chain, migrated_url):
    """Two gateways on one database: `a` sells without workers, `b` does not poll."""
    settings = settings.changed(base_url="http://127.0.0.1:8080", webhooks="local")
    settings.data_dir.mkdir()
    async with contextlib.AsyncExitStack() as stack:
        started = []
        for name in "ab":
            store = PostgresStore(migrated_url, node=name)
            store.wakes.timing = WakeTiming(reconnect_s=0.05)
            gateway = await stack.enter_async_context(
                running(settings, ScriptedProvider(), store=store, timing=NO_POLLS)
            )
            gateway.chain = chain
            await gateway.services.payments.cutoff_block()
            await until(lambda store=store: store.wakes.is_live)
            started.append(gateway)
        await stop_workers(started[0])
        await let_workers_wait(started[1])
        yield started


async def stop_workers(gateway):
    dispatcher = gateway.services.workers._dispatcher
    dispatcher.cancel()
    await asyncio.wait([dispatcher])


async def let_workers_wait(gateway):
    """Return once the workers have polled for the last time within hours."""
    workers = gateway.services.workers
    workers.resources.timing = TaskTiming(idle_s=HOURS_S, backoff_s=0.02)
    workers.wake()
    loop = asyncio.get_running_loop()
    await until(lambda: workers._search_at > loop.time() + HOURS_S / 2)


async def buy(gateway, how, **fields):
    """Buy on a node by x402 or by a direct transfer; returns the task's id."""
    payer, body = Payer(gateway.chain), {"prompt": "a fox"} | fields
    if how == "x402":
        answer = await gateway.client.post(
            "/api/x402/picture", json=body, headers={"X-PAYMENT": payer.header(20_000)}
        )
    else:
        body |= {"slug": "picture", "txHash": payer.transfer(20_000)}
        answer = await gateway.client.post("/api/proxy-generate", json=body)
    assert answer.status_code == 200, await answer.get_json()
    return (await answer.get_json())["taskId"]


async def read_task(gateway, task_id):
    return await gateway.services.store.task(task_id)


async def wait_here(gateway, task_id, wait_s=HOURS_S):
    """Wait like a long poll, but for hours: only a notification ends it in time."""
    async with asyncio.timeout(PATIENCE_S):
        await poll_task(gateway.services, task_id, wait_s, "203.0.113.1")
    return await read_task(gateway, task_id)


@pytest.mark.parametrize("how", ["direct", "x402"])
async def test_a_task_accepted_on_one_node_is_begun_by_the_other_at_once(nodes, how):
    one, two = nodes
    task_id = await buy(one, how)
    task = await wait_here(two, task_id)
    assert str(task.status) == "completed"


async def test_a_long_poll_on_one_node_ends_when_the_other_completes(nodes):
    one, two = nodes
    may_end = asyncio.Event()

    async def hold(request, job):
        await may_end.wait()

    provider = two.services.catalog["picture"].upstream.provider
    provider.script = [hold]
    task_id = await buy(one, "direct")
    waiting = asyncio.create_task(wait_here(one, task_id))
    await until(lambda: provider.requests and one.services.notifications._waiting)
    assert not waiting.done()
    may_end.set()
    assert str((await waiting).status) == "completed"


async def test_a_webhook_is_sent_by_whichever_node_hears_of_it(nodes):
    one, two = nodes
    # Only `a` sends, and it does not poll; `b` works.
    two.services.find(Deliveries)._dispatcher.cancel()
    one.services.find(Deliveries).timing = DeliveryTiming(poll_s=HOURS_S)
    one.services.find(Deliveries).wake()
    async with receiving() as receiver:
        url = f"http://127.0.0.1:{receiver.port}/events"
        task_id = await buy(one, "direct", callbackUrl=url)
        await until(lambda: receiver.delivered)
        assert receiver.delivered[0].event["data"]["taskId"] == task_id


async def test_what_happened_while_the_listener_was_cut_is_found_when_it_is_back(
    nodes, migrated_url
):
    one, two = nodes
    wakes = two.services.store.wakes
    connect, may_connect = wakes._connect, asyncio.Event()

    async def connect_later():
        await may_connect.wait()
        return await connect()

    wakes._connect = connect_later
    assert cut_listener(migrated_url, "b") == 1
    await until(lambda: not wakes.is_live)
    task_id = await buy(one, "direct")
    assert str((await read_task(one, task_id)).status) == "queued"
    may_connect.set()
    assert str((await wait_here(two, task_id)).status) == "completed"


async def test_while_nothing_is_heard_looks_find_it(nodes, migrated_url):
    """No listener reconnects, so `b` works and `a` responds by polling."""
    one, two = nodes
    for name, gateway in zip("ab", nodes, strict=True):
        gateway.services.store.wakes.timing = WakeTiming(reconnect_s=HOURS_S)
        assert cut_listener(migrated_url, name) == 1
    await until(lambda: not any(each.services.store.wakes.is_live for each in nodes))
    one.services.timing = attrs.evolve(NO_POLLS, fallback_poll_s=0.05)
    two.services.workers.resources.timing = TaskTiming(idle_s=0.05, backoff_s=0.02)
    two.services.workers.wake()
    task_id = await buy(one, "direct")
    assert str((await wait_here(one, task_id)).status) == "completed"


async def test_the_operator_reads_whether_a_node_hears_the_others(nodes, migrated_url):
    one, _ = nodes
    assert await wakes_row(one) == {
        "name": "wakes",
        "ok": True,
        "stops": "nothing",
        "problem": None,
    }
    one.services.store.wakes.timing = WakeTiming(reconnect_s=HOURS_S)
    cut_listener(migrated_url, "a")
    await until(lambda: not one.services.store.wakes.is_live)
    assert not (await wakes_row(one))["ok"]


async def wakes_row(gateway):
    answer = await gateway.client.get("/api/ready")
    assert answer.status_code == 200
    (row,) = [row for row in (await answer.get_json())["checks"] if row["name"] == "wakes"]
    return row


async def test_a_node_that_stops_hands_its_tasks_to_the_other_at_once(nodes):
    async def hang(request, job):
        await asyncio.sleep(HOURS_S)

    nodes[0].services.workers.start()
    await let_workers_wait(nodes[0])
    providers = [gateway.services.catalog["picture"].upstream.provider for gateway in nodes]
    for provider in providers:
        provider.script = [hang]
    task_id = await buy(nodes[0], "direct")
    await until(lambda: providers[0].requests or providers[1].requests)
    stops = 0 if providers[0].requests else 1
    providers[1 - stops].script = []
    nodes[stops].services.timing = attrs.evolve(NO_POLLS, drain_tasks_s=0.0)
    await nodes[stops].services.lifecycle.drain()
    assert str((await wait_here(nodes[1 - stops], task_id)).status) == "completed"
    assert providers[1 - stops].requests


async def test_on_one_machine_nobody_else_is_told(gateway):
    assert gateway.services.store.wakes is None
    names = [
        row["name"] for row in (await (await gateway.client.get("/api/ready")).get_json())["checks"]
    ]
    assert "wakes" not in names
