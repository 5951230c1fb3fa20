"""The four rate limits of spec §8, with an exact `Retry-After`."""

import random
import tracemalloc

import attrs
import pytest
import structlog
from limits import RateLimitItemPerSecond
from werkzeug.datastructures import Headers

from gateway import Settings
from gateway.errors import SettingsError, TooManyRequests
from gateway.running.limit_windows import LoopStorage, limit_of
from gateway.running.rate_limits import RateLimits
from gateway.settings import load_settings
from gateway.web.front.current import _warn_once, client_address
from gateway_operator.settings import OperatorSettings
from tests.conftest import WALLET, running

PUBLISHED = {"x402": (10, 60), "direct": (5, 60), "task": (5, 1), "login": (5, 300)}
PATHS = {
    "x402": "/api/x402/picture",
    "direct": "/api/proxy-generate",
    "task": "/api/task/none",
    "login": "/admin/login",
}
ROUTES = pytest.mark.parametrize(
    ("name", "limit", "window_s"), [(name, *limit) for name, limit in PUBLISHED.items()]
)


@pytest.fixture
def published(settings):
    """The settings with the default limits."""
    defaults = Settings()
    names = [f"limit_{name}" for name in PUBLISHED if name != "login"]
    core = {name: getattr(defaults, name) for name in names}
    return settings.changed(**core, limit_login=OperatorSettings().limit_login)


@pytest.fixture
async def limited(published, provider, clock):
    clock.frozen_at = 1_795_000_000.3
    async with running(published, provider, now=clock) as gateway:
        yield gateway


async def knock(gateway, name, *, client="203.0.113.1", headers=None, path=None):
    """Send a cheap request to a limited route; returns the response."""
    ask = gateway.client.get if name == "task" else gateway.client.post
    scope = {"client": (client, 50_000)}
    return await ask(path or PATHS[name], headers=headers, scope_base=scope)


async def exhaust(gateway, name, **more):
    for _ in range(PUBLISHED[name][0]):
        assert (await knock(gateway, name, **more)).status_code != 429
    answer = await knock(gateway, name, **more)
    assert answer.status_code == 429
    return int(answer.headers["Retry-After"])


@ROUTES
async def test_the_published_limit_holds_and_retry_after_is_exact(
    limited, clock, name, limit, window_s
):
    wait_s = await exhaust(limited, name)
    assert wait_s == window_s
    clock.offset_s = wait_s - 1 if wait_s > 1 else 0.99
    refused = await knock(limited, name)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    clock.offset_s = wait_s
    assert await exhaust(limited, name) == window_s  # refused requests did not count


@ROUTES
async def test_the_window_moves(limited, clock, name, limit, window_s):
    await knock(limited, name)
    clock.offset_s = window_s / 2
    for _ in range(limit - 1):
        assert (await knock(limited, name)).status_code != 429
    clock.offset_s = window_s * 0.9
    assert (await knock(limited, name)).status_code == 429
    clock.offset_s = window_s
    assert (await knock(limited, name)).status_code != 429  # the first left the window
    refused = await knock(limited, name)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) == max(1, window_s // 2)


@ROUTES
async def test_a_refusal_has_no_code(limited, name, limit, window_s):
    await exhaust(limited, name)
    answer = await knock(limited, name)
    body = await answer.get_json()
    assert set(body) == {"error"}
    assert body["error"]
    public = None if name == "login" else "*"
    assert answer.headers.get("Access-Control-Allow-Origin") == public
    if public:
        assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]


@ROUTES
async def test_each_address_has_its_own_limit(limited, name, limit, window_s):
    await exhaust(limited, name, client="203.0.113.1")
    assert (await knock(limited, name, client="203.0.113.2")).status_code != 429


@ROUTES
async def test_each_route_has_its_own_limit(limited, name, limit, window_s):
    await exhaust(limited, name)
    for other in set(PUBLISHED) - {name}:
        assert (await knock(limited, other)).status_code != 429


async def test_every_slug_counts_towards_the_same_limit(limited):
    slugs = ("picture", "paper", "nothing", "x")
    for number in range(10):
        path = f"/api/x402/{slugs[number % 4]}"
        assert (await knock(limited, "x402", path=path)).status_code != 429
    assert (await knock(limited, "x402")).status_code == 429


async def test_a_preflight_costs_nothing(limited):
    for _ in range(20):
        assert (await limited.client.options(PATHS["x402"])).status_code == 200
    assert (await knock(limited, "x402")).status_code == 402


async def test_reading_the_catalogue_and_health_is_not_limited(limited):
    for path in ("/api/health", "/.well-known/agent-manifest.json", "/sitemap.xml"):
        for _ in range(30):
            assert (await limited.client.get(path)).status_code == 200


# -- a separate window for price requests


@pytest.fixture
async def two_windows(published, provider, clock):
    clock.frozen_at = 1_795_000_000.3
    settings = attrs.evolve(published, limit_price="3/60s")
    async with running(settings, provider, now=clock) as gateway:
        yield gateway


@pytest.mark.parametrize("name", ["X-PAYMENT", "PAYMENT-SIGNATURE"])
async def test_questions_for_the_price_leave_room_for_paid_requests(two_windows, name):
    for _ in range(3):
        assert (await knock(two_windows, "x402")).status_code == 402
    refused = await knock(two_windows, "x402")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    for _ in range(10):
        assert (await knock(two_windows, "x402", headers={name: "e30="})).status_code == 400
    assert (await knock(two_windows, "x402", headers={name: "e30="})).status_code == 429


async def test_questions_and_paid_requests_share_a_window_by_default(limited):
    for _ in range(5):
        assert (await knock(limited, "x402")).status_code == 402
        assert (await knock(limited, "x402", headers={"X-PAYMENT": "e30="})).status_code == 400
    assert (await knock(limited, "x402")).status_code == 429


@pytest.mark.parametrize("limit", ["60", "0/60s", "60/1m"])
def test_a_window_for_questions_that_is_none_is_refused(limit):
    with pytest.raises(SettingsError, match="GATEWAY_LIMIT_PRICE"):
        load_settings(wallet=WALLET, limit_price=limit)


async def test_llms_txt_tells_of_the_window_for_questions(two_windows, limited):
    assert "without a payment" in await (await two_windows.client.get("/llms.txt")).get_data(True)
    assert "without a payment" not in await (await limited.client.get("/llms.txt")).get_data(True)


# -- which address


@ROUTES
@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "Fly-Client-IP"])
async def test_a_forged_address_is_ignored(limited, name, limit, window_s, header):
    for number in range(limit):
        await knock(limited, name, headers={header: f"198.51.100.{number}"})
    answer = await knock(limited, name, headers={header: "198.51.100.99"})
    assert answer.status_code == 429


@pytest.fixture
async def behind_proxy(published, provider, clock):
    clock.frozen_at = 1_795_000_000.3
    settings = attrs.evolve(published, client_ip_header="X-Forwarded-For")
    async with running(settings, provider, now=clock) as gateway:
        yield gateway


async def test_behind_a_proxy_its_header_counts(behind_proxy):
    first, second = {"X-Forwarded-For": "198.51.100.1"}, {"X-Forwarded-For": "198.51.100.2"}
    await exhaust(behind_proxy, "direct", headers=first)
    assert (await knock(behind_proxy, "direct", headers=second)).status_code == 400
    assert (await knock(behind_proxy, "direct")).status_code == 400  # the peer itself


async def test_what_a_client_puts_before_the_proxys_word_is_ignored(behind_proxy):
    for number in range(5):
        headers = {"X-Forwarded-For": f"192.0.2.{number}, 198.51.100.1"}
        await knock(behind_proxy, "direct", headers=headers)
    headers = {"X-Forwarded-For": "192.0.2.77,198.51.100.1"}
    assert (await knock(behind_proxy, "direct", headers=headers)).status_code == 429


async def test_what_a_client_puts_on_a_line_of_its_own_is_ignored(behind_proxy):
    """A proxy may append its value as a second line of the same header."""

    def lines(forged):
        return Headers([("X-Forwarded-For", forged), ("X-Forwarded-For", "198.51.100.1")])

    for number in range(5):
        await knock(behind_proxy, "direct", headers=lines(f"192.0.2.{number}"))
    answer = await knock(behind_proxy, "direct", headers=lines("192.0.2.77"))
    assert answer.status_code == 429


async def test_one_ipv6_network_is_one_client(limited):
    await exhaust(limited, "direct", client="2001:db8:1:2::1")
    for same in ("2001:db8:1:2:ffff:1:2:3", "2001:0DB8:0001:0002::"):
        assert (await knock(limited, "direct", client=same)).status_code == 429
    assert (await knock(limited, "direct", client="2001:db8:1:3::1")).status_code == 400


async def test_a_mapped_address_is_the_ipv4_address(limited):
    await exhaust(limited, "direct", client="203.0.113.1")
    mapped = await knock(limited, "direct", client="::ffff:203.0.113.1")
    assert mapped.status_code == 429
    other = await knock(limited, "direct", client="::ffff:203.0.113.2")
    assert other.status_code == 400


@pytest.mark.parametrize(
    ("peer", "forwarded", "counted"),
    [
        ("203.0.113.1", "", "203.0.113.1"),
        ("203.0.113.1", "nonsense", "203.0.113.1"),
        ("203.0.113.1", "198.51.100.1", "198.51.100.1"),
        ("203.0.113.1", " 192.0.2.1 , 198.51.100.1 ", "198.51.100.1"),
        ("203.0.113.1", "[2001:db8::5]", "2001:db8::/64"),
        ("203.0.113.1", "198.51.100.1:5001", "198.51.100.1"),
        ("203.0.113.1", "192.0.2.1:80, 198.51.100.1:0", "198.51.100.1"),
        ("203.0.113.1", "[2001:db8::5]:5001", "2001:db8::/64"),
        ("203.0.113.1", "[::ffff:198.51.100.1]:443", "198.51.100.1"),
        ("203.0.113.1", "198.51.100.1:https", "203.0.113.1"),
        ("::ffff:203.0.113.1", "198.51.100.1:https", "203.0.113.1"),
        ("2001:db8::1", "nonsense", "2001:db8::/64"),
        ("203.0.113.1", None, "203.0.113.1"),
        ("2001:db8::1", "", "2001:db8::/64"),
        ("::ffff:203.0.113.1", "", "203.0.113.1"),
        ("<local>", "", "<local>"),
    ],
)
def test_an_address_is_counted_by_network(peer, forwarded, counted):
    assert client_address(peer, forwarded) == counted


@pytest.mark.parametrize(
    ("forwarded", "reason"),
    [("", "the header is missing"), ("unix:", "the header holds no address")],
)
def test_a_proxy_that_names_no_address_is_told_once(forwarded, reason):
    _warn_once.cache_clear()
    with structlog.testing.capture_logs() as log:
        for number in range(3):
            client_address(f"203.0.113.{number}", forwarded)
    assert [(entry["event"], entry["reason"]) for entry in log] == [("proxy.no_address", reason)]


# -- the login's limit is durable


async def test_a_restart_forgets_no_login_attempt(published, provider, clock):
    clock.frozen_at = 1_795_000_000.3
    async with running(published, provider, now=clock) as gateway:
        for _ in range(5):
            answer = await gateway.client.post("/admin/login", json={"password": "guess"})
            assert answer.status_code == 401
    clock.offset_s = 100
    right = {"password": "correct horse"}
    async with running(published, provider, now=clock) as gateway:
        answer = await gateway.client.post("/admin/login", json=right)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "200")
        clock.offset_s = 300
        assert (await gateway.client.post("/admin/login", json=right)).status_code == 200


# -- the storage


async def test_waiting_as_long_as_told_always_succeeds(clock):
    """Also at odd fractions of seconds, which floating point rounds."""
    dice = random.Random(7)
    for _ in range(3_000):
        clock.frozen_at = 1_795_000_000 + dice.random() * 1e6
        clock.offset_s = 0.0
        limits = RateLimits(Settings(limit_x402="1/60s"), clock)
        await limits.hit("x402", "a")
        clock.offset_s = dice.choice([0, 0.25, 59.999999, 30, dice.random() * 60])
        try:
            await limits.hit("x402", "a")
        except TooManyRequests as refusal:
            clock.offset_s += refusal.retry_after_s
            await limits.hit("x402", "a")


def test_addresses_that_went_quiet_are_forgotten_while_others_come(clock):
    clock.frozen_at = 1_000.0
    storage = LoopStorage(clock)
    for number in range(500):
        storage.acquire_entry(str(number), 5, 60)
    clock.offset_s = 61
    for number in range(5_000):
        storage.acquire_entry(f"new {number}", 5, 60)
    assert storage.reset() == 5_000


def test_one_hit_forgets_a_few_addresses_only(clock):
    """Removing all at once blocked the loop for 300 ms."""
    clock.frozen_at = 1_000.0
    storage = LoopStorage(clock)
    for number in range(10_000):
        storage.acquire_entry(str(number), 5, 60)
    clock.offset_s = 61
    storage.acquire_entry("new", 5, 60)
    assert storage.reset() in range(9_990, 10_002)


def test_an_address_in_its_window_is_not_forgotten(clock):
    clock.frozen_at = 1_000.0
    storage = LoopStorage(clock)
    assert storage.acquire_entry("a", 1, 60)
    clock.offset_s = 59
    storage.acquire_entry("b", 1, 60)
    assert not storage.acquire_entry("a", 1, 60)
    assert storage.get("a") == 1


def test_an_address_takes_300_bytes_at_most(clock):
    storage = LoopStorage(clock)
    tracemalloc.start()
    try:
        for number in range(20_000):
            storage.acquire_entry(f"LIMITER/x402/2001:db8:{number:x}::/64/10/60/second", 10, 60, 10)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken / storage.reset() < 300


def test_the_number_of_addresses_is_capped_and_leaves_room_for_another_limit(clock):
    """An IPv6 /47 alone has 131,072 networks, each counted as an address."""
    clock.frozen_at = 1_000.0
    storage = LoopStorage(clock)
    for number in range(205_000):
        storage.acquire_entry(f"x402 {number}", 1, 60)
    assert not storage.acquire_entry("x402 204999", 1, 60)
    for number in range(100):
        assert storage.acquire_entry(f"task {number}", 1, 1)
        assert not storage.acquire_entry(f"task {number}", 1, 1)
    assert 190_000 < storage.reset() <= 200_000


def test_a_storage_forgets_one_address_on_demand(clock):
    storage = LoopStorage(clock)
    storage.acquire_entry("a", 1, 60)
    assert storage.check()
    storage.clear("a")
    assert storage.acquire_entry("a", 1, 60)


@pytest.mark.parametrize(("hits", "window_s"), [(10, 60), (1, 1), (3, 86_400)])
def test_a_key_is_the_one_that_the_library_writes(hits, window_s):
    expected = RateLimitItemPerSecond(hits, window_s)
    assert limit_of(hits, window_s).key_for("x402", "10.0.0.1") == expected.key_for(
        "x402", "10.0.0.1"
    )
