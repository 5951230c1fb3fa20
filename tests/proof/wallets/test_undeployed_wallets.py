"""POST /api/x402/{slug} paid by wallets that do not exist yet (ERC-6492)."""

import attrs
import pytest
from eth_account import Account

from gateway.chain.smart_wallets import (
    DEPLOYMENT_GAS,
    deployment_call,
    unwrap_signature,
)
from gateway.chain.transactions import MULTICALL3
from gateway.domain import Authorization as Signed
from gateway.domain.eip3009 import BASE
from gateway_demo.chain import FAUCET_KEY
from gateway_demo.chain import contracts as chain_contracts
from tests.authorizations import header_of, payload_of
from tests.conftest import WALLET, running
from tests.proof.wallets.accounts import answering, hostile, reverting, wrap, yes_after
from tests.proof.wallets.buying import (
    SIGNATURE,
    SPENT,
    bought,
    is_completed,
    newest_settlement,
    refused,
    until,
)

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.fixture
async def deploying(settings, provider, chain, newcomer):
    """A gateway whose operator allows that one factory to deploy."""
    allowed = attrs.evolve(settings, erc6492_factories=(newcomer.factory,))
    async with running(allowed, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        yield gateway


@VERSIONS
async def test_a_wallet_is_deployed_by_its_first_payment(deploying, chain, newcomer, version):
    header = newcomer.header(wrap=newcomer.wrap, version=version)
    task_id = await bought(deploying, header, version)
    await is_completed(deploying, chain, task_id)
    assert newcomer.is_deployed
    settlement = newest_settlement(chain)
    assert "0x" + settlement.to.hex() == MULTICALL3
    assert settlement.gas == DEPLOYMENT_GAS
    assert await bought(deploying, header, version) == task_id


async def test_the_next_payment_goes_straight_to_the_token(deploying, chain, newcomer):
    await bought(deploying, newcomer.header(wrap=newcomer.wrap))
    task_id = await bought(deploying, newcomer.header())
    await is_completed(deploying, chain, task_id, units=40_000)
    settlement = newest_settlement(chain)
    assert "0x" + settlement.to.hex() == chain.usdc.lower()


@VERSIONS
async def test_without_allowed_factories_no_wallet_is_deployed(gateway, chain, newcomer, version):
    header = newcomer.header(wrap=newcomer.wrap, version=version)
    assert await refused(gateway, chain, header, version) == SIGNATURE
    assert not newcomer.is_deployed


async def test_another_factory_than_the_allowed_one_is_not_called(deploying, chain, newcomer):
    twin = chain.deploy(FAUCET_KEY, chain_contracts.load("AccountFactory"))
    header = newcomer.header(wrap=lambda signature: newcomer.wrap(signature, factory=twin))
    assert await refused(deploying, chain, header) == SIGNATURE


@pytest.mark.parametrize("write", [str.lower, lambda text: "0x" + text[2:].upper()])
async def test_a_factory_is_allowed_in_any_case(settings, provider, chain, newcomer, write):
    allowed = attrs.evolve(settings, erc6492_factories=(write(newcomer.factory),))
    async with running(allowed, provider) as gateway:
        task_id = await bought(gateway, newcomer.header(wrap=newcomer.wrap))
        await is_completed(gateway, chain, task_id)


async def test_an_existing_wallet_may_wrap_its_signature_for_any_factory(gateway, chain, newcomer):
    """Its code exists, so nothing is deployed, and the allow-list is not used."""
    newcomer.deploy()
    task_id = await bought(gateway, newcomer.header(wrap=newcomer.wrap))
    await is_completed(gateway, chain, task_id)


async def test_only_the_owner_signs_for_a_wallet_to_be(deploying, chain, newcomer):
    stranger = attrs.evolve(newcomer, owner=Account.create())
    header = stranger.header(wrap=newcomer.wrap)
    assert await refused(deploying, chain, header) == SIGNATURE
    assert not newcomer.is_deployed


@pytest.mark.parametrize("create", [b"", b"\1" * 4, b"\1" * 900])
async def test_a_factory_call_that_deploys_nothing_pays_nothing(deploying, chain, newcomer, create):
    header = newcomer.header(wrap=lambda signature: newcomer.wrap(signature, create=create))
    assert await refused(deploying, chain, header) == SIGNATURE


async def test_a_factory_that_deploys_another_wallet_pays_nothing(deploying, chain, newcomer):
    other = newcomer.create[:-32] + b"\1" * 32  # the same owner, another salt
    header = newcomer.header(wrap=lambda signature: newcomer.wrap(signature, create=other))
    assert await refused(deploying, chain, header) == SIGNATURE


async def test_a_deployment_that_needs_too_much_gas_is_not_begun(settings, provider, chain):
    burner = hostile(chain, yes_after("5b610bb85a11600057"))  # until 3,000 gas are left
    allowed = attrs.evolve(settings, erc6492_factories=(burner.address,))
    async with running(allowed, provider) as gateway:
        payer = attrs.evolve(burner, address=Account.create().address)
        chain.fund(payer.address)
        header = payer.header(wrap=lambda signature: wrap(burner.address, b"", signature))
        assert await refused(gateway, chain, header) == SIGNATURE


async def test_a_restart_forgets_nothing_of_a_wrapped_signature(
    settings, provider, chain, newcomer
):
    allowed = attrs.evolve(settings, erc6492_factories=(newcomer.factory,))
    header = newcomer.header(wrap=newcomer.wrap)
    chain.set_automine(False)
    async with running(allowed, provider) as gateway:
        task_id = await bought(gateway, header)
    (sent,) = chain.node.pool.waiting.values()
    assert chain.drop("0x" + sent.hash.hex())
    chain.set_automine(True)
    # The operator has changed the list; accepted payments are still settled.
    async with running(settings, provider) as gateway:
        await is_completed(gateway, chain, task_id)
        assert await bought(gateway, header) == task_id
    assert newcomer.is_deployed


# -- broken wrappers


def _words(wrapped: bytes, place: int, value: int) -> bytes:
    return wrapped[: 32 * place] + value.to_bytes(32, "big") + wrapped[32 * place + 32 :]


BROKEN = {
    "factory with dirt above": lambda w: b"\1" + w[1:],
    "calldata elsewhere": lambda w: _words(w, 1, 128),
    "calldata at the end of the world": lambda w: _words(w, 1, 2**256 - 1),
    "signature before the calldata": lambda w: _words(w, 2, 0),
    "signature behind the end": lambda w: _words(w, 2, 10**6),
    "calldata longer than all": lambda w: _words(w, 3, 10**6),
    "calldata of 2**255 bytes": lambda w: _words(w, 3, 2**255),
    "a word too much": lambda w: w[:-32] + bytes(32) + w[-32:],
    "a word too few": lambda w: w[:-64] + w[-32:],
    "a byte too few": lambda w: w[:-33] + w[-32:],
    "dirt in the padding": lambda w: w[:-33] + b"\1" + w[-32:],
    "only the magic": lambda w: w[-32:],
    "no magic": lambda w: w[:-32],
    "another magic": lambda w: w[:-1] + b"\x93",
    "wrapped twice": lambda w: wrap("0x" + w[12:32].hex(), b"", w),
}


@pytest.mark.parametrize("break_it", BROKEN.values(), ids=BROKEN)
async def test_a_broken_wrapper_is_no_signature(deploying, chain, newcomer, break_it):
    header = newcomer.header(wrap=lambda signature: break_it(newcomer.wrap(signature)))
    assert await refused(deploying, chain, header) == SIGNATURE
    assert not newcomer.is_deployed


# -- a third party deploys, or submits, first


async def test_a_wallet_that_is_deployed_while_we_settle_still_pays(
    deploying, chain, newcomer, gas_key
):
    """Its factory then burns our gas; the second transaction does without it."""
    chain.set_automine(False)
    newcomer.deploy(gas=4_000_000)  # waits, and will be mined before ours
    header = newcomer.header(wrap=newcomer.wrap)
    task_id = await bought(deploying, header)
    ours = await until(lambda: _of(chain, gas_key))
    assert ours.to.hex() == MULTICALL3[2:]
    chain.set_automine(True)
    await is_completed(deploying, chain, task_id)
    assert chain.receipt("0x" + ours.hash.hex())["status"] == "0x0"
    assert await bought(deploying, header) == task_id


def _of(chain, gas_key):
    with chain.node.lock:
        waiting = list(chain.node.pool.waiting.values())
    ours = [sent for sent in waiting if sent.sender == bytes.fromhex(gas_key.address[2:])]
    return ours[0] if ours else None


@pytest.mark.parametrize("factory", [reverting(b""), answering(b"")], ids=["reverts", "no news"])
def test_a_factory_that_fails_cheaply_does_not_stop_a_deployed_wallets_payment(
    chain, smart, factory
):
    """Between our simulation and our transaction: one transaction is enough then."""
    signed = smart.authorization()
    useless = hostile(chain, factory).address
    wrapped = wrap(useless, b"", smart.sign(signed))
    authorization = Signed(
        sender=signed.sender.lower(),
        recipient=signed.to.lower(),
        value_units=signed.units,
        valid_after=signed.valid_after,
        valid_before=signed.valid_before,
        nonce="0x" + signed.nonce.hex(),
        signature=wrapped,
    )
    call = deployment_call(authorization, BASE, unwrap_signature(wrapped))
    tx_hash = chain.send_transaction(FAUCET_KEY, call.to, call.data, gas=call.gas)
    assert chain.receipt(tx_hash)["status"] == "0x1"
    assert chain.usdc_balance(WALLET) == 20_000


@VERSIONS
async def test_a_new_wallets_payment_may_be_submitted_by_somebody_else(
    deploying, chain, newcomer, version
):
    newcomer.deploy()
    signed = newcomer.authorization()
    signature = newcomer.sign(signed)
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    forged = payload_of(signed, newcomer.wrap(b"\1" * 65), version=version)
    assert await refused(deploying, chain, header_of(forged), version) == SPENT
    ours = payload_of(signed, newcomer.wrap(signature), version=version)
    task_id = await bought(deploying, header_of(ours), version)
    await is_completed(deploying, chain, task_id)


async def test_a_wrapper_does_not_help_to_claim_a_plain_accounts_payment(
    deploying, chain, newcomer, payer
):
    signed = payer.authorization()
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    forged = header_of(payload_of(signed, newcomer.wrap(b"\1" * 65)))
    assert await refused(deploying, chain, forged) == SPENT
