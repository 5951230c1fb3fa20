"""Which settlement key sends if some cannot; signers and journal are scripted."""

import asyncio
from collections import Counter

import attrs
import pytest
import structlog

from gateway import ChainUnavailable
from gateway.chain.transactions import Call, Known
from gateway_local_settler.keys import SettlementKeys

CALL = Call(to="0x" + "11" * 20, data=b"", gas=90_000)
PAYMENT = object()
ALL = ("0xa", "0xb", "0xc")


@pytest.fixture
def keys_of(clock):
    """Return a function that makes the keys of these signers."""
    return lambda *signers: SettlementKeys(signers, clock)


@attrs.define
class Key:
    """A signer whose results the test chooses."""

    address: str
    is_rich: bool = True
    waiting: int = 0
    is_ill: bool = False
    resends: str | None = None
    seen_money: None = None
    asked: list = attrs.field(factory=list)
    balance_reads: int = 0

    async def can_pay(self, gas):
        self.balance_reads += 1
        return self.is_rich

    async def count_waiting(self):
        self.asked.append("count_waiting")
        return self.waiting

    async def resend(self, payment):
        return self.resends

    async def send_new(self, payment, call, known):
        self.asked.append("send_new")
        return f"sent by {self.address}"

    async def tend(self):
        self.asked.append("tend")
        if self.is_ill:
            raise ChainUnavailable(f"{self.address} is ill")


async def test_the_key_with_the_fewest_waiting_sends(keys_of):
    keys = keys_of(Key("0xa", waiting=3), Key("0xb", waiting=2), Key("0xc", waiting=9))
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xb"


@pytest.mark.parametrize(
    ("waiting", "sender"), [((2, 0), "0xa"), ((9, 3), "0xb"), ((16, 14), "0xb"), ((64, 61), "0xb")]
)
async def test_a_key_whose_count_is_known_sends_unless_it_is_clearly_busier(
    keys_of, waiting, sender
):
    keys = keys_of(
        *(Key(name, waiting=one) for name, one in zip(("0xa", "0xb"), waiting, strict=True))
    )
    sent = await keys.submit(PAYMENT, CALL, Known(is_first=True, count_of={"0xa": 7}.get))
    assert sent == f"sent by {sender}"


async def test_a_poor_key_does_not_send_though_its_count_is_known(keys_of):
    keys = keys_of(Key("0xa", is_rich=False), Key("0xb"))
    assert (
        await keys.submit(PAYMENT, CALL, Known(is_first=True, count_of={"0xa": 7}.get))
        == "sent by 0xb"
    )


async def test_purchases_of_a_moment_share_one_look_and_divide_the_free_places(keys_of):
    first, second = Key("0xa", waiting=4), Key("0xb")
    keys = keys_of(first, second)
    sent = await asyncio.gather(*(keys.submit(PAYMENT, CALL) for _ in range(10)))
    assert Counter(sent) == {"sent by 0xa": 3, "sent by 0xb": 7}
    assert first.asked.count("count_waiting") == second.asked.count("count_waiting") == 1


async def test_what_was_sent_since_is_looked_at_again_a_moment_later(keys_of, clock):
    first, second = Key("0xa"), Key("0xb", waiting=1)
    keys = keys_of(first, second)
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xa"
    # It is mined at once, and another node of the gateway has sent two with the second key.
    clock.now, second.waiting = clock.now + 1, 3
    sent = [await keys.submit(PAYMENT, CALL) for _ in range(3)]
    assert sent == ["sent by 0xa"] * 3


async def test_what_is_signed_is_sent_again_though_no_key_can_pay(keys_of):
    keys = keys_of(Key("0xa", is_rich=False, resends="0x1"), Key("0xb", is_rich=False))
    assert await keys.submit(PAYMENT, CALL) == "0x1"


async def test_nothing_is_signed_while_no_key_can_pay(keys_of):
    poor = [Key("0xa", is_rich=False), Key("0xb", is_rich=False)]
    with pytest.raises(ChainUnavailable, match="No settlement key can pay"):
        await keys_of(*poor).submit(PAYMENT, CALL)
    assert [key.asked for key in poor] == [[], []]


async def test_a_key_that_runs_dry_is_told_once_and_when_it_can_pay_again(keys_of):
    first, second = Key("0xa"), Key("0xb")
    keys = keys_of(first, second)
    with structlog.testing.capture_logs() as entries:
        await keys.submit(PAYMENT, CALL)
        second.is_rich = False
        for _ in range(3):
            await keys.submit(PAYMENT, CALL)
        second.is_rich = True
        await keys.submit(PAYMENT, CALL)
    assert [(entry["event"], entry["about"]) for entry in entries] == [
        ("settlement.key_cannot_pay", "0xb"),
        ("settlement.key_can_pay", "0xb"),
    ]


async def test_the_trouble_of_one_key_keeps_no_other_from_its_work(keys_of):
    ill, well = Key("0xa", is_ill=True), Key("0xb")
    with pytest.raises(ChainUnavailable, match="0xa is ill"):
        await keys_of(ill, well).tend()
    assert (ill.asked, well.asked) == (["tend"], ["tend"])


async def test_a_machine_signs_with_its_own_keys_and_counts_no_others(keys_of, clock):
    first, second, third = Key("0xa", waiting=5), Key("0xb", waiting=3), Key("0xc")
    keys = keys_of(first, second, third)
    keys.share(["0xa", "0xb"], ALL)
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xb"
    assert third.asked == []
    # The others' transactions are tended, too: their machine may be dead.
    await keys.tend()
    assert third.asked == ["tend"]
    # It has another key by now.
    keys.share(["0xc"], ALL)
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xc"


@pytest.mark.parametrize("state", [{"waiting": 64}, {"is_rich": False}])
async def test_another_machines_key_signs_while_no_own_one_can(keys_of, state):
    keys = keys_of(Key("0xa", **state), Key("0xb", waiting=9), Key("0xc", waiting=8))
    keys.share(["0xa"], ALL)
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xc"


@pytest.mark.parametrize(
    ("own", "other", "chosen"),
    [(15, 0, "0xa"), (16, 8, "0xb"), (16, 9, "0xa"), (63, 32, "0xa"), (64, 63, "0xb")],
)
async def test_a_clearly_less_busy_key_of_another_machine_signs_from_16_on(
    keys_of, own, other, chosen
):
    keys = keys_of(Key("0xa", waiting=own), Key("0xb", waiting=other))
    keys.share(["0xa"], ALL)
    assert await keys.submit(PAYMENT, CALL) == f"sent by {chosen}"


async def test_a_purchase_reads_the_balances_of_its_own_keys_first(keys_of, clock):
    first, second = Key("0xa"), Key("0xb")
    keys = keys_of(first, second)
    keys.share(["0xa"], ALL)
    assert await keys.can_pay(CALL.gas)
    assert (first.balance_reads, second.balance_reads) == (1, 0)
    first.is_rich = False
    assert await keys.can_pay(CALL.gas)
    assert second.balance_reads == 1
    second.is_rich = False
    assert not await keys.can_pay(CALL.gas)
    # The overview shows them all, as of the last minute.
    for _ in range(3):
        await keys.read_money(CALL.gas)
    assert (first.balance_reads, second.balance_reads) == (4, 3)
    clock.now += 60
    await keys.read_money(CALL.gas)
    assert (first.balance_reads, second.balance_reads) == (5, 4)


async def test_the_least_busy_key_signs_if_every_key_is_full(keys_of):
    keys = keys_of(Key("0xa", waiting=70), Key("0xb", waiting=65), Key("0xc", waiting=69))
    keys.share(["0xa"], ALL)
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xb"


@pytest.mark.parametrize("own", [[], ["0xd"]])
async def test_a_machine_without_keys_of_its_own_signs_with_any(keys_of, own):
    keys = keys_of(Key("0xa", waiting=1), Key("0xb"))
    keys.share(own, ALL)
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xb"


@pytest.mark.parametrize("own", [["0xa"], []])
async def test_a_key_that_another_machine_lacks_signs_nothing(keys_of, own):
    keys = keys_of(Key("0xa", waiting=64), Key("0xb", waiting=70), Key("0xc"))
    keys.share(own, ["0xa", "0xb"])
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xa"


async def test_without_a_key_that_all_machines_have_any_key_signs(keys_of):
    keys = keys_of(Key("0xa", waiting=1), Key("0xb"))
    keys.share([], [])
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xb"
