"""Which settlements rely on an earlier simulation; chain, journal and clock are scripted."""

import asyncio
from types import SimpleNamespace

import attrs
import pytest

from gateway import CallReverted, ChainUnavailable, ExecutionError, PaymentRequired
from gateway.chain.keys import address_of
from gateway.contracts import NoFreeNonce
from gateway.domain import Authorization
from gateway.domain.eip3009 import BASE
from gateway_local_settler import settler as module
from gateway_local_settler.settler import LocalSettler
from tests.authorizations import signed_by

SECRET, KEY, SECOND = b"\1" * 32, b"\2" * 32, b"\3" * 32
PAYER = address_of(SECRET).lower()
DELEGATED = bytes.fromhex("ef0100" + "11" * 20)
QUOTE = SimpleNamespace(network=BASE)
SIMULATE, CODE, COUNT, SEND = "simulate at real fees", "code", "count", "send"
READ = "the journal"
SHARED = "simulate with others"


def signed(nonce: int = 1) -> Authorization:
    return signed_by(SECRET, nonce)


@attrs.define
class Outside:
    """The chain, the journal of the keys, and the time."""

    now_s: float = 1_000.0
    code_is: bytes = b""
    # Whether simulations of several sales can share a call.
    shares: bool = True
    sharing_takes_s: float = 0.0
    is_money_there: bool = True
    refuses_our_key: bool = False
    fees_take_s: float = 0.0
    count_takes_s: float = 0.0
    is_count_silent: bool = False
    mined: int = 5
    used: int = 0
    # The journal finds too many waiting by a lower count.
    least_count: int = 0
    # By key address.
    waiting: dict = attrs.field(factory=dict)
    failed_wei: int = 0
    calls: list = attrs.field(factory=list)
    nonces: list = attrs.field(factory=list)
    # Attempts to sign.
    writes: int = 0

    async def simulate_plain(self, authorization):
        self.calls.append(SHARED)
        self.now_s += self.sharing_takes_s
        return self.shares and self.is_money_there and not self.code_is

    async def code(self, address, *, at=None):
        self.calls.append(CODE)
        return self.code_is

    async def call(self, data, *, sender=None, to=None, gas=None, fees=None):
        assert sender is not None
        assert fees is not None
        self.calls.append(SIMULATE)
        if self.refuses_our_key or not self.is_money_there:
            raise CallReverted("FiatTokenV2: invalid signature")
        return b""

    async def fees(self):
        self.now_s += self.fees_take_s
        return 10**7, 10**6

    async def gas_balance(self, address):
        return 10**18

    async def transaction_count(self, address):
        self.calls.append(COUNT)
        self.now_s += self.count_takes_s
        if self.is_count_silent:
            raise ChainUnavailable("silent")
        return self.mined

    async def send(self, raw):
        self.calls.append(SEND)

    async def unmined_of(self, *_):
        self.calls.append(READ)

    async def nonces_of(self, *_):
        self.calls.append(READ)
        return self.used

    async def waiting_of(self, address, count):
        return self.waiting.get(address, 0)

    async def failed_gas(self, *, since):
        return self.failed_wei

    async def begin_settling(self, payment_id, unsigned, now):
        self.writes += 1
        if unsigned.chain_nonce < self.least_count:
            raise NoFreeNonce(unsigned.signer)
        if unsigned.used_nonces != self.used:
            raise RuntimeError("another nonce was used")
        self.nonces.append(unsigned.chain_nonce)
        return unsigned.sign(unsigned.chain_nonce)


@pytest.fixture
def outside():
    return Outside()


@pytest.fixture
def keys():
    return [KEY]


@pytest.fixture
def settler(outside, keys, monkeypatch):
    monkeypatch.setattr(module, "load_settlement_keys", lambda settings: keys)
    settings = SimpleNamespace(
        chain=BASE,
        database_url="",
        settlement_batch=1,
        failed_gas_per_hour=0.001,
        max_fee_gwei=1.0,
    )
    return LocalSettler(
        SimpleNamespace(
            chain=outside, journal=outside, now=lambda: outside.now_s, settings=settings
        )
    )


async def check(settler, authorization):
    """Check it as a purchase does, whose own simulation has passed."""
    await settler.prepare(authorization)
    await settler.check(authorization, QUOTE)


async def submit(settler, outside, authorization):
    """Submit; returns the calls and reads of that."""
    outside.calls.clear()
    await settler.submit(SimpleNamespace(id=1, authorization=authorization))
    return outside.calls


@pytest.mark.parametrize(("shares", "asked"), [(True, [SHARED]), (False, [SHARED, CODE])])
async def test_an_empty_account_is_not_simulated_again(settler, outside, shares, asked):
    outside.shares = shares
    await check(settler, signed())
    assert [call for call in outside.calls if call in (SHARED, CODE)] == asked
    assert outside.calls.count(COUNT) == 1
    assert await submit(settler, outside, signed()) == [SEND]
    assert outside.nonces == [5]


async def test_the_next_submit_is_simulated_with_other_sales(settler, outside):
    await check(settler, signed())
    await submit(settler, outside, signed())
    assert await submit(settler, outside, signed()) == [READ, READ, COUNT, SHARED, SEND]


async def test_code_that_an_account_gets_is_seen_by_its_next_purchase(settler, outside):
    """Such as by EIP-7702, for code that refuses what our key sends."""
    await check(settler, signed(1))
    outside.code_is, outside.refuses_our_key = DELEGATED, True
    with pytest.raises(PaymentRequired):
        await check(settler, signed(2))
    assert await submit(settler, outside, signed(2)) == [READ, READ, COUNT, SHARED, SIMULATE]


async def test_an_account_with_code_is_simulated_before_each_transaction(settler, outside):
    outside.code_is = DELEGATED
    await check(settler, signed())
    assert await submit(settler, outside, signed()) == [SIMULATE, COUNT, SEND]


async def test_code_that_was_read_long_ago_is_read_again(settler, outside):
    await settler.prepare(signed())
    outside.now_s += 2.0
    outside.code_is, outside.refuses_our_key = DELEGATED, True
    with pytest.raises(PaymentRequired):
        await settler.check(signed(), QUOTE)


@pytest.mark.parametrize(
    ("shares", "asked"), [(True, [COUNT, SHARED, SEND]), (False, [COUNT, SHARED, SIMULATE, SEND])]
)
async def test_an_old_check_is_simulated_again_but_its_payment_has_sent_nothing(
    settler, outside, shares, asked
):
    outside.shares = shares
    await check(settler, signed())
    outside.now_s += 3.0
    assert await submit(settler, outside, signed()) == asked


async def test_long_after_its_check_a_payment_may_have_sent_something(settler, outside):
    """Another process may have submitted it."""
    await check(settler, signed())
    outside.now_s += 60.0
    assert await submit(settler, outside, signed()) == [READ, READ, COUNT, SHARED, SEND]


async def test_an_account_that_is_not_plain_any_more_is_simulated_from_our_key(settler, outside):
    await check(settler, signed())
    outside.now_s += 3.0
    outside.code_is, outside.refuses_our_key = DELEGATED, True
    assert await submit(settler, outside, signed()) == [COUNT, SHARED, SIMULATE]


async def test_a_shared_simulation_that_takes_a_second_is_not_relied_on(settler, outside):
    await check(settler, signed())
    outside.now_s += 3.0
    outside.sharing_takes_s = 1.0
    assert await submit(settler, outside, signed()) == [COUNT, SHARED, SIMULATE, SEND]


async def test_code_counts_for_the_gas_of_the_hour_at_once(settler, outside):
    await check(settler, signed(1))
    outside.code_is, outside.failed_wei = DELEGATED, 10**18
    with pytest.raises(ExecutionError, match="Too many settlements"):
        await check(settler, signed(2))


async def test_without_readings_the_code_is_read_and_the_call_simulated(settler, outside):
    outside.is_count_silent = True
    with pytest.raises(ChainUnavailable):
        await settler.prepare(signed())
    outside.is_count_silent = False
    outside.calls.clear()
    await settler.check(signed(), QUOTE)
    assert CODE in outside.calls
    assert await submit(settler, outside, signed()) == [COUNT, SHARED, SEND]


async def test_a_slow_read_of_the_fees_makes_the_check_old(settler, outside):
    await check(settler, signed())
    outside.fees_take_s = 8.0
    assert SHARED in await submit(settler, outside, signed())


async def test_a_call_that_reverts_by_then_is_not_sent(settler, outside):
    await check(settler, signed())
    outside.fees_take_s, outside.is_money_there = 8.0, False
    assert await submit(settler, outside, signed()) == [COUNT, SHARED, SIMULATE]


async def test_a_payment_that_has_used_a_nonce_is_simulated(settler, outside):
    await check(settler, signed())
    outside.used = 1
    with pytest.raises(RuntimeError):
        await submit(settler, outside, signed())
    assert SEND not in outside.calls
    assert await submit(settler, outside, signed()) == [READ, READ, CODE, SIMULATE, COUNT, SEND]


async def test_a_count_by_which_too_many_wait_is_read_again(settler, outside):
    await check(settler, signed())
    outside.mined, outside.least_count = 69, 69
    assert await submit(settler, outside, signed()) == [COUNT, SEND]
    assert outside.nonces == [69]


async def test_too_many_waiting_by_the_new_count_is_an_error(settler, outside):
    await check(settler, signed())
    outside.least_count = 69
    with pytest.raises(NoFreeNonce):
        await submit(settler, outside, signed())
    assert outside.calls == [COUNT]


async def refused(settler, outside, authorization):
    """Submit while no nonce is free; returns the calls and reads of that."""
    with pytest.raises(NoFreeNonce):
        await submit(settler, outside, authorization)
    return list(outside.calls)


async def test_a_payment_that_found_no_nonce_signs_without_a_simulation_a_moment_later(
    settler, outside
):
    await check(settler, signed())
    outside.least_count = 69
    await refused(settler, outside, signed())
    outside.mined, outside.writes = 69, 0
    assert await submit(settler, outside, signed()) == [COUNT, COUNT, SEND]
    # The old count is not tried again.
    assert outside.writes == 1


async def test_a_payment_that_waits_longer_is_simulated_with_others(settler, outside):
    await check(settler, signed())
    outside.least_count = 69
    await refused(settler, outside, signed())
    outside.now_s += 2.0
    outside.mined = 69
    assert await submit(settler, outside, signed()) == [COUNT, COUNT, SHARED, SEND]


async def test_nothing_is_simulated_for_a_key_without_a_free_nonce(settler, outside):
    await check(settler, signed())
    outside.waiting = {address_of(KEY): 64}
    for age_s, calls in ((2.0, [COUNT]), (2.0, [COUNT]), (60.0, [READ, READ, COUNT])):
        outside.now_s += age_s
        assert await refused(settler, outside, signed()) == calls
    outside.waiting = {address_of(KEY): 63}
    assert await submit(settler, outside, signed()) == [COUNT, READ, READ, COUNT, SHARED, SEND]


@pytest.mark.parametrize("code", [b"", DELEGATED])
async def test_a_payment_that_waits_asks_for_a_nonce_before_all_else(settler, outside, code):
    """It is neither resent nor simulated meanwhile, even without a reading of its check."""
    outside.code_is, outside.waiting, outside.least_count = code, {address_of(KEY): 64}, 69
    assert await refused(settler, outside, signed()) != [COUNT]
    for _ in range(8):
        outside.now_s += 1.0
        assert await refused(settler, outside, signed()) == [COUNT]


async def test_payments_that_wait_share_a_count(settler, outside):
    outside.waiting = {address_of(KEY): 64}
    payments = [SimpleNamespace(id=one, authorization=signed(one)) for one in range(9)]
    for _ in range(2):
        outside.calls.clear()
        submits = (settler.submit(each) for each in payments)
        errors = await asyncio.gather(*submits, return_exceptions=True)
        assert {type(error) for error in errors} == {NoFreeNonce}
    assert outside.calls == [COUNT]


async def test_a_shared_simulation_is_kept_if_another_payment_takes_the_nonce(settler, outside):
    await check(settler, signed())
    outside.now_s, outside.least_count = outside.now_s + 3.0, 69
    assert await refused(settler, outside, signed()) == [COUNT, SHARED]
    outside.now_s += 0.9
    assert await refused(settler, outside, signed()) == [COUNT, COUNT]
    outside.now_s, outside.mined = outside.now_s + 0.2, 69
    assert await submit(settler, outside, signed()) == [COUNT, COUNT, SHARED, SEND]


async def test_the_operator_sees_payments_that_wait_before_their_simulation(settler, outside):
    outside.waiting = {address_of(KEY): 64}
    for _ in range(3):
        for nonce in range(5):
            await refused(settler, outside, signed(nonce))
        outside.now_s += 60.0
    assert settler.busy_keys == [address_of(KEY)]


async def test_a_payment_that_waits_for_long_is_one_wait_for_the_operator(settler, outside):
    """Each minute the busy key would need five."""
    for minute in range(3):
        outside.waiting = {address_of(KEY): 64}
        for _ in range(20):
            await refused(settler, outside, signed(minute))
            outside.now_s += 1.0
        outside.waiting = {}
        for nonce in range(10):
            await submit(settler, outside, signed(10 + nonce))
        outside.now_s += 40.0
    assert settler.busy_keys == []


@pytest.mark.parametrize("keys", [[KEY, SECOND]])
async def test_a_key_that_was_not_read_ahead_needs_only_its_count(settler, outside):
    await check(settler, signed())
    outside.waiting = {address_of(KEY): 30}
    # The counts by which a key is chosen are read again.
    outside.now_s += 0.5
    assert await submit(settler, outside, signed()) == [COUNT, COUNT, COUNT, SEND]


@pytest.mark.parametrize("keys", [[KEY, SECOND]])
async def test_a_simulation_that_ages_during_the_count_is_repeated(settler, outside):
    await check(settler, signed())
    outside.waiting = {address_of(KEY): 30}
    outside.now_s, outside.count_takes_s = outside.now_s + 0.5, 0.3
    assert (await submit(settler, outside, signed()))[-2:] == [SHARED, SEND]
