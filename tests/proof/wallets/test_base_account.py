"""Purchases by Base Account, Coinbase's passkey wallet, with the settings of a new gateway.

Its wallets sign by EIP-1271, and before they exist by ERC-6492 through Multicall3.
"""

import attrs
import pytest
from eth_account import Account

from tests.authorizations import header_of, payload_of
from tests.conftest import running
from tests.proof.wallets.accounts import wrap
from tests.proof.wallets.base_account import (
    FACTORY,
    FIRST_FACTORY,
    MULTICALL,
    aggregate,
    base_account,
    install,
)
from tests.proof.wallets.buying import SIGNATURE, bought, is_completed, newest_settlement, refused

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.fixture(autouse=True)
def _contracts(chain):
    install(chain)


@VERSIONS
@pytest.mark.parametrize("factory", [FACTORY, FIRST_FACTORY], ids=["1.1", "1"])
async def test_a_new_account_of_either_factory_buys(gateway, chain, factory, version):
    payer = base_account(chain, factory)
    header = payer.header(wrap=payer.wrap, version=version)
    task_id = await bought(gateway, header, version)
    await is_completed(gateway, chain, task_id)
    assert payer.is_deployed
    assert await bought(gateway, header, version) == task_id


async def test_a_signature_that_names_the_factory_itself_buys_too(gateway, chain):
    payer = base_account(chain)
    header = payer.header(wrap=lambda signature: wrap(payer.factory, payer.create, signature))
    await is_completed(gateway, chain, await bought(gateway, header))


async def test_the_second_purchase_deploys_nothing(gateway, chain):
    payer = base_account(chain)
    await bought(gateway, payer.header(wrap=payer.wrap))
    task_id = await bought(gateway, payer.header())
    await is_completed(gateway, chain, task_id, units=40_000)
    assert "0x" + newest_settlement(chain).to.hex() == chain.usdc.lower()


async def test_a_signature_of_another_account_of_the_same_owner_pays_nothing(gateway, chain):
    payer = base_account(chain)
    payer.deploy()
    other = base_account(chain)
    stranger = attrs.evolve(other, owner=payer.owner)
    signed = payer.authorization()
    header = header_of(payload_of(signed, stranger.sign(signed)))
    assert await refused(gateway, chain, header) == SIGNATURE


async def test_only_the_owner_signs(gateway, chain):
    payer = base_account(chain)
    stranger = attrs.evolve(payer, owner=Account.create())
    assert await refused(gateway, chain, stranger.header(wrap=payer.wrap)) == SIGNATURE
    assert not payer.is_deployed


WRAPPERS = {
    "two accounts at our expense": lambda one: aggregate(
        (one.factory, one.create), (one.factory, one.create)
    ),
    "nothing": lambda _: aggregate(),
    "another contract": lambda one: aggregate((one.chain.usdc, one.create)),
    "another one first": lambda one: aggregate((one.chain.usdc, b""), (one.factory, one.create)),
    "Multicall3 in Multicall3": lambda one: aggregate(
        (MULTICALL, aggregate((one.factory, one.create)))
    ),
    "another function": lambda one: b"\1" + aggregate((one.factory, one.create))[1:],
    "a word too much": lambda one: aggregate((one.factory, one.create)) + bytes(32),
    "a byte too few": lambda one: aggregate((one.factory, one.create))[:-1],
    "empty": lambda _: b"",
}


@pytest.mark.parametrize("calls", WRAPPERS.values(), ids=WRAPPERS)
async def test_multicall_may_call_nothing_but_an_allowed_factory_once(gateway, chain, calls):
    payer = base_account(chain)
    header = payer.header(wrap=lambda signature: wrap(MULTICALL, calls(payer), signature))
    assert await refused(gateway, chain, header) == SIGNATURE
    assert not payer.is_deployed


async def test_an_operator_may_allow_no_factory(settings, provider, chain):
    payer = base_account(chain)
    async with running(attrs.evolve(settings, erc6492_factories=()), provider) as gateway:
        assert await refused(gateway, chain, payer.header(wrap=payer.wrap)) == SIGNATURE
        payer.deploy()
        await is_completed(gateway, chain, await bought(gateway, payer.header()))


# -- the limit of deployments


async def test_beyond_the_days_deployments_a_new_account_is_refused_before_it_pays(
    settings, provider, chain, payer
):
    first, second, third = (base_account(chain) for _ in range(3))
    limited = attrs.evolve(settings, deployments_per_day=2)
    async with running(limited, provider) as gateway:
        await gateway.wait(await bought(gateway, first.header(wrap=first.wrap)))
        await gateway.wait(await bought(gateway, second.header(wrap=second.wrap)))
        reason = await refused(gateway, chain, third.header(wrap=third.wrap))
        assert "deploys no more new smart wallets today" in reason
        # Others buy as before: a plain account, and a wallet that exists.
        await bought(gateway, payer.header())
        await bought(gateway, first.header())
        third.deploy()
        await bought(gateway, third.header(wrap=third.wrap))
    # A restart does not forget.
    fourth = base_account(chain)
    async with running(limited, provider) as gateway:
        assert "no more" in await refused(gateway, chain, fourth.header(wrap=fourth.wrap))
