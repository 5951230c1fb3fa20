"""The search for the event of a spent nonce, on chains of any pace and endpoints of any quality."""

import attrs
import pytest

from gateway.domain import Authorization
from gateway.domain.eip3009 import BASE
from gateway.errors import ExecutionError, PaymentRequired
from gateway.payments.nonce_events import EventNotLogged, EventNotMined, find_event
from gateway.payments.reconcile import EventSearch
from gateway_testing.fakes.chain import PAYER, WALLET, quote_of_picture
from tests.unit.payments.paced_chain import DENIM, PACES, TX_HASH, PacedChain

PRICE = 20_000
NOW = DENIM + 1_800.0
HOUR_S = 3_600.0
AGES_S = {"a block": 0.1, "a second": 1.2, "three minutes": 170.0, "an hour": HOUR_S}


def signed_at(at: float) -> Authorization:
    """Return an authorization as official clients sign it, for an hour."""
    return Authorization(
        sender=PAYER,
        recipient=WALLET,
        value_units=PRICE,
        valid_after=int(at) - 600,
        valid_before=int(at) + 3_600,
        nonce="0x" + "ab" * 32,
        signature=b"",
    )


def spent_before(age_s: float, **more) -> PacedChain:
    """Return a chain on which a third party has paid us with the nonce."""
    transfer = more.pop("transfer", (WALLET, PRICE))
    chain = PacedChain(now=NOW, signed=signed_at(NOW - age_s), transfer=transfer, **more)
    chain.spent_in = chain.number_at(NOW - age_s)
    return chain


async def find(chain: PacedChain, *, after: int = 0):
    """Search at the head."""
    known = await chain.head()
    since = chain.signed.valid_before - 7_800
    return await find_event(chain, chain.signed, BASE, after=after, since=since, known=known)


async def check(chain: PacedChain, *, cutoff: int = 0, born_at: float = 0.0) -> None:
    await EventSearch(pause_s=0.0).check_payment(
        chain, chain.signed, quote_of_picture(), cutoff=cutoff, born_at=born_at
    )


@pytest.mark.parametrize("age_s", AGES_S.values(), ids=AGES_S)
@pytest.mark.parametrize("paces", PACES.values(), ids=PACES)
async def test_a_transfer_by_a_third_party_is_found_at_any_pace(paces, age_s):
    chain = spent_before(age_s, paces=paces)
    event = await find(chain)
    assert (event.receipt.block.number, event.was_used) == (chain.spent_in, True)
    assert sum(chain.calls.values()) <= 30
    await check(chain)


@pytest.mark.parametrize("age_s", AGES_S.values(), ids=AGES_S)
@pytest.mark.parametrize("paces", PACES.values(), ids=PACES)
async def test_without_old_state_the_logs_show_it(paces, age_s):
    chain = spent_before(age_s, paces=paces, kept_s=1.0, most_log_blocks=10_000)
    event = await find(chain)
    assert (event.receipt.block.number, event.was_used) == (chain.spent_in, True)
    assert chain.calls["logs"] <= 4
    await check(chain)


@pytest.mark.parametrize("kept_s", [float("inf"), 1.0], ids=["state", "logs only"])
@pytest.mark.parametrize("age_s", [0.1, 1.2, 60.0, 160.0])
@pytest.mark.parametrize("paces", PACES.values(), ids=PACES)
async def test_logs_that_lag_refuse_no_money_that_arrived(paces, age_s, kept_s):
    """The buyer keeps the signature, and is sold the task once the logs have caught up."""
    chain = spent_before(age_s, paces=paces, kept_s=kept_s, log_lag_s=180.0)
    with pytest.raises(ExecutionError, match="send the same request again"):
        await check(chain)
    chain.log_lag_s = 0.0
    await check(chain)


@pytest.mark.parametrize(
    ("kept_s", "error"),
    [(float("inf"), EventNotMined), (1.0, EventNotLogged)],
    ids=["state", "logs only"],
)
async def test_a_missing_log_proves_nothing(kept_s, error):
    with pytest.raises(error):
        await find(spent_before(60.0, kept_s=kept_s, log_lag_s=180.0))


@pytest.mark.parametrize(
    "transfer",
    [None, ("0x" + "99" * 20, PRICE), (WALLET, PRICE - 1)],
    ids=["cancelled", "paid somebody else", "too little"],
)
async def test_a_nonce_that_did_not_pay_us_is_refused(transfer):
    with pytest.raises(PaymentRequired, match="nonce_already_used"):
        await check(spent_before(600.0, transfer=transfer))


@pytest.mark.parametrize("paces", PACES.values(), ids=PACES)
async def test_a_transfer_up_to_the_cutoff_block_does_not_count(paces):
    chain = spent_before(HOUR_S, paces=paces)
    assert await find(chain, after=chain.spent_in) is None
    with pytest.raises(PaymentRequired, match="nonce_already_used"):
        await check(chain, cutoff=chain.spent_in)
    event = await find(chain, after=chain.spent_in - 1)
    assert event.receipt.tx_hash == TX_HASH


@pytest.mark.parametrize("paces", PACES.values(), ids=PACES)
async def test_a_transfer_in_the_second_of_the_databases_birth_does_not_count(paces):
    """The cutoff block was read from an endpoint that lagged."""
    chain = spent_before(HOUR_S, paces=paces)
    second = int(chain.time_of(chain.spent_in))
    with pytest.raises(PaymentRequired, match="nonce_already_used"):
        await check(chain, born_at=second + 0.9)
    await check(chain, born_at=second - 0.1)


async def test_an_endpoint_whose_newest_block_is_before_the_event_refuses_nothing():
    """Another endpoint has shown that the nonce is spent."""
    chain = spent_before(10.0)
    cutoff, chain.now = chain.number_at(NOW - 20.0), NOW - 30.0
    with pytest.raises(ExecutionError, match="send the same request again"):
        await check(chain, cutoff=cutoff)


async def test_an_endpoint_without_state_and_wide_logs_is_unknown_not_empty():
    chain = spent_before(HOUR_S, kept_s=1.0, most_log_blocks=10)
    chain.signed = attrs.evolve(chain.signed, valid_after=0)
    with pytest.raises(ExecutionError, match="send the same request again"):
        await check(chain)


async def test_the_logs_of_a_long_outage_are_searched():
    """The same nonce may have been signed again for later, so nothing is left out."""
    chain = spent_before(2 * 86_400.0, kept_s=1.0, most_log_blocks=10_000)
    event = await find(chain)
    assert event.receipt.block.number == chain.spent_in
    assert chain.calls["logs"] <= 90


async def test_the_receipts_of_a_block_show_what_its_logs_do_not_yet():
    chain = spent_before(1.2, log_lag_s=180.0, has_receipts=True)
    await check(chain)
    assert sum(chain.calls.values()) <= 12


@pytest.mark.parametrize("answers", [0, 1], ids=["never spent", "always spent"])
@pytest.mark.parametrize("age_s", [60.0, HOUR_S])
async def test_an_endpoint_whose_state_is_always_the_same_is_not_believed(age_s, answers):
    """It ignores the block, or has no state there; the logs show what happened."""
    chain = spent_before(age_s, fixed_state=answers)
    event = await find(chain)
    assert event.receipt.block.number == chain.spent_in
    await check(chain)


@pytest.mark.parametrize("kept_s", [25.6, 300.0, 2_000.0])
@pytest.mark.parametrize("age_s", [20.0, 250.0, 1_900.0])
async def test_the_state_that_an_endpoint_keeps_is_used(age_s, kept_s):
    chain = spent_before(age_s, kept_s=kept_s, most_log_blocks=500)
    await check(chain)
    if age_s < kept_s:
        assert chain.calls["logs"] == 1
    assert chain.calls["state"] <= 36
