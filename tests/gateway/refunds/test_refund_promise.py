"""The refund promise to buyers is one that the gateway can keep."""

import attrs
import pytest
from eth_account import Account

from gateway.chain.smart_wallets import KEY_GAS
from tests.authorizations import decoded
from tests.conftest import buy, running
from tests.gateway.refunds.conftest import fail_once
from tests.gateway.refunds.steps import until_state

PRICE = 20_000
AUTOMATIC = {"onFailure": "automatic", "amount": "full", "to": "payer", "withinSeconds": 3600}
REVIEW = {"onFailure": "review", "amount": "full", "to": "payer"}
NONE = {"onFailure": "none"}


@pytest.fixture
def default(settings):
    """A refund key, and the default policy."""
    return attrs.evolve(settings, refunds="")


async def promised(gateway) -> dict:
    """Return the promise in a picture's 402 once the refund key was checked."""
    await gateway.services.refund_promises.refresh()
    answer = await buy(gateway, None)
    policy = decoded(answer.headers["PAYMENT-REQUIRED"])["extensions"]["refund-policy"]
    assert policy["schema"]["type"] == "object"
    found = policy["info"]
    assert found.pop("policyUrl") == "http://gateway.test/llms.txt"
    return found


async def test_with_a_refund_key_refunds_are_automatic_and_promised(
    default, provider, payer, chain, clock, refund_key
):
    async with running(default, provider, now=clock) as gateway:
        assert await promised(gateway) == AUTOMATIC
        task = await fail_once(gateway, payer, provider)
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(refund_key.address) == 1_000_000 - PRICE


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"refunds": "manual"}, REVIEW),
        ({"refund_key": ""}, NONE),
        ({"refund_daily_cap": "0.019999"}, REVIEW),
        ({"refund_daily_cap": "0.02"}, AUTOMATIC),
    ],
    ids=str,
)
async def test_less_is_promised_where_less_can_be_kept(default, provider, change, expected):
    async with running(attrs.evolve(default, **change), provider) as gateway:
        assert await promised(gateway) == expected


async def test_a_key_without_money_promises_a_review_until_it_has_some(default, provider, chain):
    account = Account.create()
    poor = attrs.evolve(default, refund_key=account.key.hex())
    async with running(poor, provider) as gateway:
        assert await promised(gateway) == REVIEW
        chain.fund(account.address, eth_wei=0, usdc_units=PRICE)
        # No gas.
        assert await promised(gateway) == REVIEW
        chain.fund(account.address, eth_wei=10**18, usdc_units=PRICE)
        assert await promised(gateway) == AUTOMATIC


async def test_gas_for_fewer_refunds_than_sending_needs_promises_a_review(default, provider, chain):
    account = Account.create()
    few = attrs.evolve(default, refund_key=account.key.hex())
    async with running(few, provider) as gateway:
        refunds = gateway.services.refunds
        fee_wei = sum(await gateway.services.chain.fees())
        chain.fund(account.address, eth_wei=2 * KEY_GAS * fee_wei, usdc_units=PRICE)
        assert (await refunds.gas_of_key()).calls == 2
        assert await promised(gateway) == REVIEW


async def test_gas_over_the_cap_promises_a_review(default, provider):
    async with running(attrs.evolve(default, max_fee_gwei=1e-9), provider) as gateway:
        assert await promised(gateway) == REVIEW


async def test_what_was_refunded_today_is_not_promised_again(settings, default, provider, payer):
    async with running(settings, provider) as gateway:
        await fail_once(gateway, payer, provider)
    capped = attrs.evolve(default, refund_daily_cap="0.03")
    async with running(capped, provider) as gateway:
        assert await promised(gateway) == REVIEW


@pytest.mark.parametrize(("refunds", "word"), [("", "automatic"), ("manual", "review")])
async def test_every_document_says_the_same(default, provider, refunds, word):
    async with running(attrs.evolve(default, refunds=refunds), provider) as gateway:
        assert (await promised(gateway))["onFailure"] == word
        for path, key in (
            ("/.well-known/agent-manifest.json", "refundPolicy"),
            ("/openapi.json", "x-refund-policy"),
        ):
            assert (await (await gateway.client.get(path)).get_json())[key]["onFailure"] == word
        sentence = gateway.services.refund_promise().sentence
        for path in ("/llms.txt", "/", "/play/picture"):
            assert sentence in await (await gateway.client.get(path)).get_data(as_text=True)
