"""How often the facilitator is called, and the cached results; no chain, no sockets."""

import asyncio

import attrs
import pytest

from gateway import (
    Authorization,
    ChainUnavailable,
    ExecutionError,
    Payment,
    PluginContext,
    Settings,
)
from gateway_facilitator_settler.client import Answer, FacilitatorUnavailable
from gateway_facilitator_settler.settler import FacilitatorSettler, FacilitatorTiming

NOW = 1_800_000_000.0
LIFE_S = 300
HASH = "0x" + "12" * 32
TIMING = FacilitatorTiming(answer_s=0.05)
PAUSE_S, HASH_PAUSE_S = TIMING.pause_s, TIMING.hash_pause_s
KINDS = {"kinds": [{"x402Version": 2, "scheme": "exact", "network": "eip155:8453"}]}
SETTLED = Answer(status=200, body={"success": True, "transaction": HASH, "network": "eip155:8453"})
REFUSED = Answer(status=200, body={"success": False, "transaction": "", "network": "eip155:8453"})


@attrs.define
class Moment:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


@attrs.define
class Journal:
    """Records each T2."""

    events: list

    async def begin_settling(self, payment_id, transaction, *, now):
        assert transaction is None
        self.events.append(("T2", payment_id))


@attrs.define
class Unspent:
    """A chain on which nothing was spent."""

    async def call_uint(self, data):
        return 0


@attrs.define
class ScriptedClient:
    """Returns a test's responses in turn; the last one is repeated."""

    events: list
    supported: object = attrs.field(factory=lambda: Answer(status=200, body=KINDS))
    settle: object = REFUSED
    asked_supported: int = 0
    gate: asyncio.Event = attrs.field(factory=asyncio.Event)

    def __attrs_post_init__(self):
        self.gate.set()

    async def get(self, path):
        self.asked_supported += 1
        await asyncio.sleep(0)
        return _give(self.supported)

    async def post(self, path, body):
        self.events.append((path, body["paymentPayload"]["payload"]["authorization"]["nonce"]))
        await self.gate.wait()
        return _give(self.settle)


def _give(answer):
    if isinstance(answer, Exception):
        raise answer
    return answer


@attrs.define
class Bench:
    settler: FacilitatorSettler
    client: ScriptedClient
    clock: Moment
    events: list

    @property
    def posts(self) -> int:
        return sum(path == "/settle" for path, _ in self.events)

    async def submit(self, payment):
        """Return the result of submitting: a hash, None, or "unknown"."""
        try:
            return await self.settler.submit(payment)
        except ChainUnavailable:
            return "unknown"


@pytest.fixture
async def bench():
    events, clock = [], Moment()
    client = ScriptedClient(events)
    settings = Settings(wallet="0x" + "11" * 20, facilitator_url="https://facilitator.test")
    context = PluginContext(settings=settings, chain=Unspent(), journal=Journal(events), now=clock)
    settler = FacilitatorSettler(context, client, timing=TIMING)
    yield Bench(settler, client, clock, events)
    await settler.close()


def payment(number: int = 1, valid_before: float = NOW + LIFE_S) -> Payment:
    signed = Authorization(
        sender="0x" + "22" * 20,
        recipient="0x" + "11" * 20,
        value_units=20_000,
        valid_after=0,
        valid_before=int(valid_before),
        nonce=f"0x{number:064x}",
        signature=bytes(65),
    )
    unused = dict.fromkeys(field.name for field in attrs.fields(Payment))
    known = {"id": number, "price_units": 20_000, "authorization": signed, "slug": "picture"}
    return Payment(**unused | known)


async def test_t2_is_written_before_each_post(bench):
    await bench.submit(payment())
    bench.clock.now += PAUSE_S
    await bench.submit(payment())
    assert [what for what, _ in bench.events] == ["T2", "/settle"] * 2


async def test_within_the_pause_nothing_is_posted(bench):
    for _ in range(20):
        assert await bench.submit(payment()) is None
        bench.clock.now += PAUSE_S / 40
    assert bench.posts == 1
    bench.clock.now += PAUSE_S
    assert await bench.submit(payment()) is None
    assert bench.posts == 2


async def test_a_hash_is_remembered_and_asked_for_again_much_later(bench):
    bench.client.settle = SETTLED
    for _ in range(20):
        assert await bench.submit(payment()) == HASH
        bench.clock.now += HASH_PAUSE_S / 21
    assert bench.posts == 1
    bench.clock.now += HASH_PAUSE_S
    bench.client.settle = FacilitatorUnavailable("/settle: status 500")
    assert await bench.submit(payment()) == HASH  # also where the repeat fails
    await asyncio.wait({bench.settler._attempts[1].task})
    assert await bench.submit(payment()) == HASH
    assert bench.posts == 2


async def test_while_one_is_in_flight_there_is_no_other(bench):
    bench.client.gate.clear()
    for _ in range(5):
        assert await bench.submit(payment()) == "unknown"
        bench.clock.now += PAUSE_S
    assert bench.posts == 1
    bench.client.settle = SETTLED
    bench.client.gate.set()
    assert await bench.submit(payment()) == HASH
    assert bench.posts == 1


async def test_submitting_twice_at_the_same_time_posts_once(bench):
    outcomes = await asyncio.gather(*(bench.submit(payment()) for _ in range(5)))
    assert outcomes == [None] * 5
    assert bench.posts == 1


async def test_a_caller_that_is_cancelled_leaves_the_post_running(bench):
    bench.client.gate.clear()
    caller = asyncio.create_task(bench.settler.submit(payment()))
    await asyncio.wait({caller}, timeout=0.01)
    assert bench.posts == 1
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    bench.client.settle = SETTLED
    bench.client.gate.set()
    assert await bench.submit(payment()) == HASH
    assert bench.posts == 1


async def test_payments_do_not_wait_for_each_other(bench):
    bench.client.gate.clear()
    assert await asyncio.gather(*(bench.submit(payment(n)) for n in range(5))) == ["unknown"] * 5
    assert bench.posts == 5


async def test_after_valid_before_nothing_is_posted(bench):
    assert await bench.submit(payment()) is None
    bench.clock.now += LIFE_S
    assert await bench.submit(payment()) is None
    assert await bench.submit(payment(2)) is None
    assert bench.posts == 1


async def test_payments_past_their_time_are_forgotten(bench):
    bench.client.settle = SETTLED
    for number in range(100):
        assert await bench.submit(payment(number)) == HASH
    await bench.settler.tend()
    assert len(bench.settler._attempts) == 100
    bench.clock.now += LIFE_S + 121
    await bench.settler.tend()
    assert bench.settler._attempts == {}


async def test_a_facilitator_that_asks_to_wait_is_left_alone_and_nothing_is_sold(bench):
    bench.client.settle = FacilitatorUnavailable("/settle: status 429", retry_after_s=60)
    assert await bench.submit(payment()) == "unknown"
    bench.clock.now += 59
    assert await bench.submit(payment()) == "unknown"
    assert await bench.submit(payment(2)) == "unknown"
    with pytest.raises(ExecutionError, match="cannot settle"):
        await bench.settler.check_ready()
    assert bench.posts == 1
    bench.clock.now += PAUSE_S
    bench.client.settle = SETTLED
    await bench.settler.check_ready()
    assert await bench.submit(payment()) == HASH
    assert await bench.submit(payment(2)) == HASH


async def test_the_kinds_are_read_once_in_five_minutes(bench):
    await asyncio.gather(*(bench.settler.check_ready() for _ in range(10)))
    bench.clock.now += 299
    await bench.settler.check_ready()
    assert bench.client.asked_supported == 1
    bench.clock.now += 1
    await bench.settler.check_ready()
    assert bench.client.asked_supported == 2


@pytest.mark.parametrize(
    "supported",
    [
        FacilitatorUnavailable("/supported: status 500"),
        Answer(status=401, body={"error": "unauthorized"}),
        Answer(status=401, body=KINDS),
        Answer(status=200, body={"kinds": []}),
        Answer(status=200, body={"kinds": "all"}),
        Answer(status=200, body={"kinds": [[], 5, None, {"network": ["base"]}]}),
        Answer(
            status=200,
            body={"kinds": [{"x402Version": 1, "scheme": "exact", "network": "eip155:8453"}]},
        ),
        Answer(
            status=200,
            body={"kinds": [{"x402Version": 2, "scheme": "exact", "network": "base"}]},
        ),
        Answer(
            status=200,
            body={"kinds": [{"x402Version": 2, "scheme": "upto", "network": "eip155:8453"}]},
        ),
    ],
    ids=[
        "500",
        "401",
        "401 with kinds",
        "none",
        "text",
        "nonsense",
        "v1 CAIP",
        "v2 name",
        "another scheme",
    ],
)
async def test_kinds_without_ours_stop_selling_and_are_read_again_soon(bench, supported):
    bench.client.supported = supported
    for _ in range(10):
        with pytest.raises(ExecutionError, match="cannot settle"):
            await bench.settler.check_ready()
    assert await bench.submit(payment()) == "unknown"
    assert (bench.client.asked_supported, bench.posts) == (1, 0)
    bench.clock.now += 5
    bench.client.supported = Answer(status=200, body=KINDS)
    await bench.settler.check_ready()
    assert bench.settler.about == "facilitator.test settles exact on eip155:8453 by x402 v2"


async def test_the_newest_form_is_spoken(bench):
    older = {"x402Version": 1, "scheme": "exact", "network": "base"}
    bench.client.supported = Answer(status=200, body={"kinds": [older, *KINDS["kinds"], older]})
    await bench.settler.check_ready()
    assert "v2" in bench.settler.about


@pytest.mark.parametrize("network", ["base", "eip155:8453"])
@pytest.mark.parametrize("success", [True, False])
async def test_a_hash_on_our_network_is_where_to_look_first(bench, network, success):
    """Also for a failure: "pending" names the broadcast transaction."""
    body = {"success": success, "transaction": HASH.upper().replace("X", "x"), "network": network}
    bench.client.settle = Answer(status=200, body=body)
    assert await bench.submit(payment()) == HASH
