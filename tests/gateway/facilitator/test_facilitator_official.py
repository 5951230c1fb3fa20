"""Purchases that the official package's facilitator really settles, on the embedded chain."""

import pytest

from gateway_facilitator_settler.settler import FacilitatorTiming
from tests.authorizations import decoded
from tests.conftest import WALLET, buy
from tests.waits import Waits, started_with

PRICE = 20_000
RECEIPTS = {1: "X-PAYMENT-RESPONSE", 2: "PAYMENT-RESPONSE"}
NETWORKS = {1: "base", 2: "eip155:8453"}


@pytest.fixture(autouse=True)
def _patience():
    """Wait for the facilitator's real work, even on a slow machine."""
    with started_with(Waits(outcome_s=120.0, facilitator=FacilitatorTiming(answer_s=120.0))):
        yield


@pytest.mark.parametrize("versions", [(1,), (2,), (1, 2)], ids=["v1", "v2", "both"])
@pytest.mark.parametrize("paid_by", [1, 2], ids=["v1 client", "v2 client"])
async def test_a_purchase_is_settled_by_the_facilitator(
    gateway, payer, chain, site, versions, paid_by
):
    answer = await buy(gateway, payer.header(version=paid_by))
    assert answer.status_code == 200, await answer.get_json()
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == PRICE

    receipt = chain.receipt(task["payment"]["transaction"])
    assert receipt["from"].lower() == site.official.account.address.lower()
    assert receipt["status"] == "0x1"
    assert decoded(answer.headers[RECEIPTS[paid_by]]) == {
        "success": True,
        "transaction": task["payment"]["transaction"],
        "network": NETWORKS[paid_by],
        "payer": payer.account.address,
    }
    spoken = max(versions)
    assert [body["x402Version"] for body in site.bodies("/settle")] == [spoken]
    assert [seen.path for seen in site.seen] == ["/supported", "/verify", "/settle"]


async def test_the_kinds_are_read_once_for_many_purchases(gateway, payer, chain, site):
    for _ in range(3):
        assert (await buy(gateway, payer.header())).status_code == 200
    assert chain.usdc_balance(WALLET) == 3 * PRICE
    assert (site.count("/supported"), site.count("/verify"), site.count("/settle")) == (1, 3, 3)


async def test_the_same_header_again_is_settled_once(gateway, payer, chain, site):
    header = payer.header()
    first, second = await buy(gateway, header), await buy(gateway, header)
    assert (await first.get_json())["taskId"] == (await second.get_json())["taskId"]
    assert chain.usdc_balance(WALLET) == PRICE
    assert (site.count("/verify"), site.count("/settle")) == (1, 1)
