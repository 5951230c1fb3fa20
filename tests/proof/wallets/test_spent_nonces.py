"""A smart account's nonce spent by a third party's transaction: its claim needs a signature."""

import pytest
from eth_account import Account

from tests.authorizations import header_of, payload_of
from tests.conftest import WALLET, buy
from tests.proof.wallets.accounts import MAGIC, answering, hostile
from tests.proof.wallets.buying import SIGNATURE, SPENT, bought, is_completed, refused, submit

STRANGER = Account.create().address
VERSIONS = pytest.mark.parametrize("version", [1, 2])
FORGED = [b"", b"\1" * 65, b"\1" * 100, bytes(64) + b"\x1b"]


@VERSIONS
@pytest.mark.parametrize("forged", FORGED, ids=["empty", "65 bytes", "100 bytes", "zeros"])
async def test_who_only_saw_a_smart_accounts_nonce_cannot_claim_its_payment(
    gateway, chain, smart, forged, version
):
    signed = smart.authorization()
    submit(chain, signed, smart.sign(signed))
    theirs = header_of(payload_of(signed, forged, version=version))
    assert await refused(gateway, chain, theirs, version) == SPENT
    ours = header_of(payload_of(signed, smart.sign(signed), version=version))
    task_id = await bought(gateway, ours, version)
    await is_completed(gateway, chain, task_id)


async def test_an_account_that_answers_too_much_proves_nothing_about_a_spent_nonce(gateway, chain):
    payer = hostile(chain, answering(MAGIC + bytes(32)))
    signed = payer.authorization()
    submit(chain, signed, b"\1" * 65)
    assert await refused(gateway, chain, header_of(payload_of(signed, b"\2" * 65))) == SPENT


async def test_a_spent_nonce_does_not_help_a_plain_accounts_forger(gateway, chain, payer):
    signed = payer.authorization()
    submit(chain, signed, signed.sign(payer.account.key, chain.chain_id, chain.usdc))
    forged = header_of(payload_of(signed, b"\1" * 65))
    assert await refused(gateway, chain, forged) == SIGNATURE


async def test_a_smart_accounts_nonce_that_paid_somebody_else_is_spent(gateway, chain, smart):
    elsewhere = smart.authorization(to=STRANGER)
    submit(chain, elsewhere, smart.sign(elsewhere))
    header = smart.header(nonce=elsewhere.nonce)
    assert (await buy(gateway, header)).status_code == 402
    assert chain.usdc_balance(WALLET) == 0
