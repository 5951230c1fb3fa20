"""Rate limits over two nodes by a real Redis: shared, and separate while it is down."""

import asyncio
import time

import attrs
import pytest
import structlog

from gateway import Settings
from gateway.errors import SettingsError, TooManyRequests
from gateway.running.rate_limits import RateLimits, make_limits
from gateway.settings import check_openers, load_settings
from gateway.store import SqliteStore
from gateway_operator.settings import operator_settings_of
from gateway_operator.state import Operator
from tests.conftest import WALLET, running
from tests.plugins.gateway_operator.app.test_api import token_of
from tests.redis_server import run_redis

SECRET = "5" * 64
PATIENCE_S = 60.0
ADDRESS = "203.0.113.77"
MOVED = {"limit_x402": "6/60s", "limit_price": "5/60s", "limit_task": "4/60s"}


@pytest.fixture
def redis(tmp_path, monkeypatch):
    """A Redis, with a timeout long enough for a busy machine."""
    for server in run_redis(tmp_path):
        # At run time, because its client is an extra.
        from gateway_nodes.rate_limits import RedisWindows

        monkeypatch.setitem(RedisWindows.__init__.__kwdefaults__, "timeout_s", PATIENCE_S)
        yield server


@pytest.fixture
async def open_limits():
    """Return a function that makes a node's limits; all are closed at the end."""
    opened = []

    def open_one(url, *, secret=SECRET, pause_s=0.0, timeout_s=PATIENCE_S, limit="3/60s"):
        limits = make_limits(Settings(limits_url=url, limit_x402=limit), time.time, secret)
        # Shorter if a test waits for the timeout.
        limits._windows._timeout_s, limits._windows._pause_s = timeout_s, pause_s
        opened.append(limits)
        return limits

    yield open_one
    for limits in opened:
        await limits.close()


async def count_passed(limits, hits, *, address=ADDRESS):
    """Return how many of `hits` requests pass."""
    passed = 0
    for _ in range(hits):
        try:
            await limits.hit("x402", address)
        except TooManyRequests:
            continue
        passed += 1
    return passed


async def retry_after_of(limits, *, address=ADDRESS):
    with pytest.raises(TooManyRequests) as refused:
        await limits.hit("x402", address)
    return refused.value.retry_after_s


def events(lines):
    return [line["event"] for line in lines if line["event"].startswith("limits.")]


# -- shared counting


async def test_two_nodes_count_one_clients_requests_together(redis, open_limits):
    one, two = open_limits(redis.url), open_limits(redis.url)
    assert await count_passed(one, 2) == 2
    assert await count_passed(two, 2) == 1
    for node in (one, two):
        assert 50 < await retry_after_of(node) <= 60
    assert await count_passed(two, 4, address="203.0.113.78") == 3


async def test_requests_at_the_same_time_pass_no_more_than_the_limit(redis, open_limits):
    nodes = [open_limits(redis.url, limit="20/60s") for _ in range(3)]
    passed = await asyncio.gather(*(count_passed(node, 1) for node in nodes * 30))
    assert sum(passed) == 20


async def test_who_waits_as_long_as_told_passes_at_the_other_node(redis, open_limits):
    one, two = open_limits(redis.url, limit="1/1s"), open_limits(redis.url, limit="1/1s")
    await one.hit("x402", ADDRESS)
    for node in (two, one, two):
        await asyncio.sleep(await retry_after_of(node))
        await node.hit("x402", ADDRESS)


async def test_two_gateways_count_together_on_every_way_in(redis, settings, provider, tmp_path):
    nodes = [
        attrs.evolve(settings, **MOVED, limits_url=redis.url, data_dir=tmp_path / name)
        for name in ("one", "two")
    ]
    for node in nodes:
        # As with nodes of one database.
        async with SqliteStore(node.data_dir / "gateway.db") as store:
            await store.meta("file_secret", lambda: SECRET)
    async with running(nodes[0], provider) as one, running(nodes[1], provider) as two:
        for number in range(5):
            asked = await (one, two)[number % 2].client.post("/api/x402/picture")
            assert asked.status_code == 402
        for number in range(6):
            paid = {"X-PAYMENT": "e30="}
            asked = await (one, two)[number % 2].client.post("/api/x402/picture", headers=paid)
            assert asked.status_code == 400
        for number in range(4):
            asked = await (one, two)[number % 2].client.get("/api/task/none")
            assert asked.status_code == 404
        for gateway in (one, two):
            for refused in (
                await gateway.client.post("/api/x402/picture"),
                await gateway.client.post("/api/x402/picture", headers={"X-PAYMENT": "e30="}),
                await gateway.client.get("/api/task/none"),
            ):
                assert refused.status_code == 429
                assert 40 < int(refused.headers["Retry-After"]) <= 60


async def test_a_flood_that_is_refused_costs_redis_nothing(redis, open_limits):
    one, two = open_limits(redis.url), open_limits(redis.url)
    await count_passed(one, 3)
    assert await count_passed(two, 1) == 0
    before = redis.ask("INFO", "stats")["total_commands_processed"]
    assert await count_passed(one, 200) == await count_passed(two, 200) == 0
    # Opening a test's connection takes some commands.
    assert redis.ask("INFO", "stats")["total_commands_processed"] - before < 20


async def test_redis_learns_no_address_and_forgets_every_key(redis, open_limits):
    await count_passed(open_limits(redis.url), 3)
    await count_passed(open_limits(redis.url, secret="6" * 64), 3)
    keys = redis.ask("KEYS", "*")
    # Another installation has its own counts for the same client.
    assert len(keys) == 2
    for key in keys:
        assert ADDRESS not in key
        assert 0 < redis.ask("TTL", key) <= 60
        assert redis.ask("LLEN", key) == 3


async def test_what_is_remembered_of_full_windows_is_bounded(redis, open_limits):
    limits = open_limits(redis.url, limit="1/60s")
    limits._full._most = 3
    others = open_limits(redis.url, limit="1/60s")
    for number in range(5):
        await others.hit("x402", f"192.0.2.{number}")
        await retry_after_of(limits, address=f"192.0.2.{number}")
    assert len(limits._full._until) == 3
    # Forgotten counts are read again.
    assert await retry_after_of(limits, address="192.0.2.0") <= 60


# -- Redis is down


async def test_a_redis_that_hangs_refuses_nobody_and_the_nodes_own_window_holds(redis, open_limits):
    limits = open_limits(redis.url)
    assert await count_passed(limits, 1) == 1
    limits._windows._timeout_s = 0.3
    with structlog.testing.capture_logs() as lines:
        with redis.hanging():
            assert await count_passed(limits, 5) == 2
            crowd = [count_passed(limits, 1, address=f"192.0.2.{one}") for one in range(100)]
            assert sum(await asyncio.gather(*crowd)) == 100
            assert "0.3 s" in await limits.find_problem()
        limits._windows._timeout_s = PATIENCE_S
        assert await limits.find_problem() == ""
    assert events(lines) == ["limits.redis_silent", "limits.redis_answers"]
    # Late responses are not taken for those of later requests.
    again = open_limits(redis.url)
    crowd = [count_passed(limits, 3, address=f"198.51.100.{one}") for one in range(40)]
    assert sum(await asyncio.gather(*crowd)) == 120
    crowd = [count_passed(again, 1, address=f"198.51.100.{one}") for one in range(40)]
    assert sum(await asyncio.gather(*crowd)) == 0


async def test_a_redis_that_dies_and_comes_back_is_used_again(redis, open_limits):
    one, two = open_limits(redis.url), open_limits(redis.url)
    assert await count_passed(one, 1) == 1
    with structlog.testing.capture_logs() as lines:
        redis.stop()
        # Each node applies the limit on its own.
        assert await count_passed(one, 5) == 2
        assert await count_passed(two, 5) == 3
        redis.start()
        other = "192.0.2.1"
        assert await count_passed(one, 2, address=other) == 2
        assert await count_passed(two, 2, address=other) == 1
    assert sorted(events(lines)) == ["limits.redis_answers"] * 2 + ["limits.redis_silent"] * 2


async def test_a_silent_redis_is_left_alone_for_a_while(redis, open_limits):
    limits = open_limits(redis.url, timeout_s=0.3, pause_s=3_600.0, limit="50/60s")
    with redis.hanging():
        assert await count_passed(limits, 1) == 1
    before = redis.ask("INFO", "stats")["total_connections_received"]
    assert await count_passed(limits, 40) == 40
    assert redis.ask("INFO", "stats")["total_connections_received"] - before == 1
    assert redis.ask("DBSIZE") == 0


async def test_a_wrong_password_is_said_and_refuses_nobody(redis, open_limits):
    limits = open_limits(redis.url.replace("correct", "wrong"))
    with structlog.testing.capture_logs() as lines:
        assert await count_passed(limits, 5) == 3
    (line,) = [line for line in lines if line["event"] == "limits.redis_silent"]
    assert "password" in line["problem"]
    assert "wrong-horse" not in line["problem"]


async def test_a_redis_that_may_not_be_written_to_is_found_by_the_check(redis, open_limits):
    redis.ask("REPLICAOF", "127.0.0.1", "1")
    limits = open_limits(redis.url)
    assert "read only" in await limits.find_problem()
    assert await count_passed(limits, 5) == 3


async def test_a_server_that_is_no_redis_refuses_nobody(open_limits):
    async def answer(reader, writer):
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n:x\r\n$-7\r\n*\xff\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        limits = open_limits(f"redis://127.0.0.1:{port}")
        assert await count_passed(limits, 5) == 3
        assert await limits.find_problem()


# -- the gateway around it


@pytest.fixture
async def without_redis(settings, provider):
    """A gateway without its Redis, from the start on."""
    chosen = attrs.evolve(
        settings, limits_url="redis://:hunter2hunter2@127.0.0.1:1/0", limit_price="2/60s"
    )
    async with running(chosen, provider) as gateway:
        yield gateway


async def test_a_gateway_without_its_redis_starts_sells_and_says_so(without_redis):
    client = without_redis.client
    answers = [(await client.post("/api/x402/picture")).status_code for _ in range(4)]
    assert answers == [402, 402, 429, 429]
    answer = await client.get("/api/ready")
    assert answer.status_code == 200
    (row,) = [row for row in (await answer.get_json())["checks"] if row["name"] == "limits"]
    assert row == {
        "name": "limits",
        "ok": False,
        "stops": "nothing",
        "problem": "Each node counts the requests of a client by itself.",
    }
    facts = await without_redis.services.find(Operator).desk.running.checks()
    (row,) = [row for row in facts if row.name == "limits"]
    assert row.problem.startswith("Redis is silent, so each node counts by itself: ")
    assert "hunter2" not in row.problem


async def test_the_operator_is_warned_and_all_is_still_sold(without_redis):
    answer = await without_redis.client.get(
        "/admin/api/v1/overview?range=24h", headers=await token_of(without_redis, "read")
    )
    overview = await answer.get_json()
    assert overview["selling"] == "yes"
    (conditions,) = [one for one in overview["needs"] if one["subject"] == "limits"]
    assert conditions["level"] == "warn"
    assert "Redis is silent" in conditions["text"]


async def test_logins_are_counted_without_redis(without_redis):
    chosen = operator_settings_of(without_redis.services.settings)
    limit = int(chosen.limit_login.partition("/")[0])
    tries = [
        (await without_redis.client.post("/admin/login", json={"password": "guess"})).status_code
        for _ in range(limit + 1)
    ]
    assert tries == [401] * limit + [429]


async def test_without_the_setting_nothing_of_redis_is_there(gateway):
    assert type(gateway.services.limits) is RateLimits
    names = [
        row["name"] for row in (await (await gateway.client.get("/api/ready")).get_json())["checks"]
    ]
    assert "limits" not in names


# -- the setting


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:6379", "redis://", "redis://host:port", "rediss://h:99999"],
)
def test_an_address_that_is_none_of_redis_stops_the_start(url):
    with pytest.raises(SettingsError, match=r"GATEWAY_LIMITS_URL is not right\. .*rediss://"):
        load_settings(wallet=WALLET, limits_url=url)


def test_an_address_with_an_option_that_is_none_stops_the_start():
    url = "redis://127.0.0.1?socket_timeout=soon"
    settings = load_settings(wallet=WALLET, limits_url=url)
    with pytest.raises(SettingsError, match="GATEWAY_LIMITS_URL is not right"):
        make_limits(settings, time.time, SECRET)


def test_redis_needs_its_client(monkeypatch):
    settings = Settings(limits_url="redis://127.0.0.1")
    check_openers(settings)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"generation-gateway\[redis\]"):
        check_openers(settings)
    check_openers(Settings())
