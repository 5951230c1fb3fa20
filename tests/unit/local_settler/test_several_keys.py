"""Which settlement key sends, when some of them cannot; signers and journal are scripted."""

import attrs
import pytest
import structlog

from gateway import ChainUnavailable
from gateway.chain.signer import Call
from gateway_local_settler.keys import SettlementKeys

CALL = Call(to="0x" + "11" * 20, data=b"", gas=90_000)
PAYMENT = object()


@attrs.define
class Key:
    """A signer whose answers the test chooses."""

    address: str
    is_rich: bool = True
    waiting: int = 0
    is_ill: bool = False
    resends: str | None = None
    seen_money: None = None
    asked: list = attrs.field(factory=list)

    async def can_pay(self, gas):
        return self.is_rich

    async def count_waiting(self):
        return self.waiting

    async def resend(self, payment):
        return self.resends

    async def send_new(self, payment, call):
        self.asked.append("send_new")
        return f"sent by {self.address}"

    async def tend(self):
        self.asked.append("tend")
        if self.is_ill:
            raise ChainUnavailable(f"{self.address} is ill")


async def test_the_key_with_the_fewest_waiting_sends():
    keys = SettlementKeys([Key("0xa", waiting=3), Key("0xb", waiting=2), Key("0xc", waiting=9)])
    assert await keys.submit(PAYMENT, CALL) == "sent by 0xb"


async def test_what_is_signed_is_sent_again_though_no_key_can_pay():
    keys = SettlementKeys([Key("0xa", is_rich=False, resends="0x1"), Key("0xb", is_rich=False)])
    assert await keys.submit(PAYMENT, CALL) == "0x1"


async def test_nothing_is_signed_while_no_key_can_pay():
    poor = [Key("0xa", is_rich=False), Key("0xb", is_rich=False)]
    with pytest.raises(ChainUnavailable, match="No settlement key can pay"):
        await SettlementKeys(poor).submit(PAYMENT, CALL)
    assert [key.asked for key in poor] == [[], []]


async def test_a_key_that_runs_dry_is_told_once_and_when_it_can_pay_again():
    first, second = Key("0xa"), Key("0xb")
    keys = SettlementKeys([first, second])
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


async def test_the_trouble_of_one_key_keeps_no_other_from_its_work():
    ill, well = Key("0xa", is_ill=True), Key("0xb")
    with pytest.raises(ChainUnavailable, match="0xa is ill"):
        await SettlementKeys([ill, well]).tend()
    assert (ill.asked, well.asked) == (["tend"], ["tend"])
