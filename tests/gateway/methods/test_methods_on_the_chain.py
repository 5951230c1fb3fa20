"""A payment method that takes USDC on the chain: its transfers are not given back as unused."""

import attrs
import pytest
from eth_account import Account

from gateway import Taken
from gateway.domain.eip3009 import transfers_to
from gateway.errors import RefundRefused
from gateway.store.unused_transfers import owe_unused
from gateway_operator.desk.payments import read_unused
from gateway_operator.state import Operator
from tests.conftest import WALLET, running
from tests.gateway.methods.tickets import TicketPlugin, Tickets, bought, refused, soon
from tests.plugins.gateway_operator.app.operator import RIGHT, log_in, post, text_of

DAY_S = 86_400.0
PAGE = "/admin/payments/refund"


@pytest.fixture
def tickets():
    return Tickets()


@pytest.fixture
async def gateway(settings, provider, clock, tickets, chain):
    settings = attrs.evolve(settings, refund_key=Account.create().key.hex(), refunds="manual")
    async with running(settings, provider, [TicketPlugin(tickets)], now=clock) as gateway:
        soon(gateway)
        await log_in(gateway)
        # No transfer of the second in which the database was made counts.
        chain.advance(2)
        yield gateway


@pytest.fixture
def desk(gateway):
    found = gateway.services.find(Operator).desk
    found.unused.pause_s = 0.0
    return found


async def search(desk):
    desk.unused.searched_at = None
    return (await read_unused(desk, timeout_s=60.0)).transfers


async def owe(desk, tx_hash):
    receipt = await desk.chain.receipt(tx_hash)
    (transfer,) = transfers_to(WALLET, receipt, desk.settings.chain)
    await desk.store.write(owe_unused, transfer, "a" * 36, desk.now())


async def pass_day(gateway, clock):
    clock.offset_s += DAY_S + 60
    # The session has ended.
    await log_in(gateway)


@pytest.mark.parametrize("text", ["{}", "paid in {} on Base", "{}#3"])
@pytest.mark.parametrize("change", [str.lower, lambda found: "0x" + found[2:].upper()])
async def test_a_transfer_that_a_receipt_names_was_used(
    gateway, desk, tickets, payer, text, change
):
    tx_hash = payer.transfer(20_000)
    tickets.answer = Taken(text.format(change(tx_hash)))
    await bought(gateway)
    assert await search(desk) == []
    with pytest.raises(RefundRefused, match="A payment by ticket names this transaction"):
        await owe(desk, tx_hash)


async def test_a_transfer_that_a_claim_names_was_used(gateway, desk, payer):
    tx_hash = payer.transfer(20_000)
    await bought(gateway, f"{tx_hash}:20000")
    assert await search(desk) == []
    with pytest.raises(RefundRefused):
        await owe(desk, tx_hash)


async def test_a_transfer_that_only_a_refusal_names_can_be_given_back(
    gateway, desk, tickets, payer
):
    tx_hash = payer.transfer(20_000)
    tickets.refuses = f"unpaid_{tx_hash}"
    await refused(gateway)
    (one,) = await search(desk)
    assert (one.tx_hash, one.methods) == (tx_hash, [])
    await owe(desk, tx_hash)


async def test_the_dialog_warns_of_payments_by_a_method_near_the_transfer(
    gateway, desk, clock, payer
):
    tx_hash = payer.transfer(20_000)
    await bought(gateway)
    await pass_day(gateway, clock)
    (one,) = await search(desk)
    assert (one.can_refund, one.methods) == (True, ["ticket"])
    dialog = await gateway.client.get(f"{PAGE}?transfer={tx_hash}:{one.log_index}")
    assert "Payments by ticket came within a day of it" in await text_of(dialog)
    page = await text_of(await gateway.client.get("/admin/payments"))
    assert "it may belong to a payment by ticket" in page


async def test_without_such_payments_there_is_no_warning(gateway, desk, clock, payer):
    await bought(gateway)
    clock.offset_s += 2 * DAY_S
    payer.chain.advance(2 * DAY_S)
    tx_hash = payer.transfer(20_000)
    await pass_day(gateway, clock)
    (one,) = await search(desk)
    assert one.methods == []
    dialog = await gateway.client.get(f"{PAGE}?transfer={tx_hash}:{one.log_index}")
    assert "Payments by" not in await text_of(dialog)
    form = {"transfer": f"{tx_hash}:{one.log_index}", "sure": "yes", "password": RIGHT}
    assert (await post(gateway, PAGE, **form)).status_code == 303
