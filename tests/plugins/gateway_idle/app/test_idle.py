"""The process ends while it is not used, and not for polls, health checks or open pages."""

import attrs
import pytest

from gateway import Part, hookimpl
from gateway_idle import IdleWatch
from tests.conftest import buy
from tests.gateway.web.conftest import keep_busy
from tests.gateway.web.orders import order
from tests.gateway.web.test_event_stream import STREAM, Listener, asked
from tests.plugins.gateway_idle.app.conftest import IDLE_S


async def test_it_ends_after_the_time_without_use(settings, idling):
    async with idling(settings) as idler:
        assert not await idler.pass_time(IDLE_S - 100)
        assert await idler.pass_time(200)
        (line,) = [line for line in idler.lines if line["event"] == "idle.ends"]
        assert line["idle_s"] >= IDLE_S


async def test_without_the_setting_nothing_watches(settings, provider, gateway):
    assert not gateway.services.keeps(IdleWatch)


@pytest.mark.parametrize("hours", [-24, 24])
async def test_a_change_of_the_machines_time_is_no_idleness(settings, idling, hours):
    async with idling(settings) as idler:
        passed_s = 0.0
        idler.gateway.services.requests.clock = lambda: passed_s
        idler.gateway.services.requests.used_at = 0.0
        assert not await idler.pass_time(hours * 3_600.0)
        passed_s = IDLE_S + 1
        assert await idler.check()


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/health", {}),
        ("/api/ready", {}),
        ("/api/task/{task}?wait=5", {}),
        # A page's own script, such as the catalogue's badge, and a program that reads.
        ("/", {"Sec-Fetch-Mode": "cors"}),
        ("/.well-known/agent-manifest.json", {}),
        ("/unknown.php", {}),
    ],
)
async def test_a_poll_keeps_it_awake_no_longer(settings, idling, payer, path, headers):
    async with idling(settings) as idler:
        task = await order(idler.gateway, payer)
        await idler.gateway.wait(task)
        assert not await idler.pass_time(IDLE_S - 100)
        await idler.gateway.client.get(path.format(task=task), headers=headers)
        assert await idler.pass_time(200)


@pytest.mark.parametrize(
    ("path", "json", "status"),
    [("/xmlrpc.php", {}, 404), ("/api/x402/picture", {"prompt": 5}, 400)],
)
async def test_a_refused_request_keeps_it_awake_no_longer(settings, idling, path, json, status):
    async with idling(settings) as idler:
        assert not await idler.pass_time(IDLE_S - 100)
        answer = await idler.gateway.client.post(path, json=json)
        assert answer.status_code == status
        assert await idler.pass_time(200)


async def test_a_price_is_use(settings, idling):
    async with idling(settings) as idler:
        assert not await idler.pass_time(IDLE_S - 100)
        assert (await buy(idler.gateway, None)).status_code == 402
        assert not await idler.pass_time(200)
        assert await idler.pass_time()


async def test_a_page_that_a_person_opens_is_use(settings, idling):
    async with idling(settings) as idler:
        assert not await idler.pass_time(IDLE_S - 100)
        await idler.gateway.client.get("/", headers={"Sec-Fetch-Mode": "navigate"})
        assert not await idler.pass_time(200)


async def test_a_running_task_keeps_it_awake(settings, idling, provider, payer):
    async with idling(settings) as idler:
        release = keep_busy(provider)
        task = await order(idler.gateway, payer)
        assert not await idler.pass_time()
        assert not await idler.check()
        # Once, not at each check.
        assert idler.stays_for() == [["tasks"]]
        release.set()
        await idler.gateway.wait(task)
        assert await idler.check()


async def test_an_open_event_stream_keeps_it_awake(settings, idling, provider, payer):
    async with idling(settings) as idler:
        release = keep_busy(provider)
        task = await order(idler.gateway, payer)
        listener = Listener(idler.gateway.app.asgi_app, asked(task, STREAM))
        await listener.wait_until(lambda one: one.events())
        assert not await idler.pass_time()
        assert idler.stays_for() == [["requests", "tasks"]]
        release.set()
        await listener.ended()
        await idler.gateway.wait(task)
        assert await idler.check()


@attrs.define
class Slow:
    """A third party's part; `answer` is awaited when it is asked for its pending work."""

    answer: object

    @hookimpl
    def register_parts(self, register, gateway):
        register(Part(name="slow", pending=self.answer))


async def test_a_request_that_comes_while_it_decides_is_served(settings, idling):
    served = []

    async def answer():
        if not served:
            served.append((await buy(idler.gateway, None)).status_code)
        return []

    async with idling(settings, more=[Slow(answer)]) as idler:
        assert not await idler.pass_time()
        assert served == [402]
        assert await idler.pass_time()


async def test_a_third_partys_part_keeps_it_awake(settings, idling):
    left = ["upload"]

    async def answer():
        return left

    async with idling(settings, more=[Slow(answer)]) as idler:
        assert not await idler.pass_time()
        assert idler.stays_for() == [["upload"]]
        left.clear()
        assert await idler.check()


async def test_work_of_another_node_starts_it_no_second_time(settings, idling):
    left = []

    async def answer():
        return left

    async with idling(settings, more=[Slow(answer)]) as idler:
        services = idler.gateway.services
        assert await idler.pass_time()
        left.append("tasks")
        await services.find(IdleWatch).check_end()
        assert services.store.fitness.problem == ""
        await buy(idler.gateway, None)
        await services.find(IdleWatch).check_end()
        assert "(tasks)" in services.store.fitness.problem


@pytest.mark.parametrize("found", [RuntimeError("broken"), [5], 5])
async def test_a_part_that_cannot_answer_counts_as_pending(settings, idling, found):
    async def answer():
        if isinstance(found, Exception):
            raise found
        return found

    async with idling(settings, more=[Slow(answer)]) as idler:
        assert not await idler.pass_time()
        assert idler.stays_for() == [["slow"]]


async def test_work_that_comes_while_the_socket_closes_makes_the_host_start_it_again(
    settings, idling, provider, payer
):
    async with idling(settings) as idler:
        services = idler.gateway.services
        await services.find(IdleWatch).check_end()
        assert services.store.fitness.problem == ""
        assert await idler.pass_time()
        idler.clock.offset_s = 0.0  # the buyer's signature is not from the past
        release = keep_busy(provider)
        # It still sells.
        task = await order(idler.gateway, payer)
        await services.find(IdleWatch).check_end()
        assert "(tasks)" in services.store.fitness.problem
        release.set()
        await idler.gateway.wait(task)
