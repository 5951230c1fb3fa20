"""Transfers of several payers in one simulation, which the embedded EVM runs."""

import asyncio
import time

import attrs
import pytest
from eth.vm.forks.prague.transactions import PragueTransactionBuilder
from eth_account import Account

from gateway.chain.client import Web3Chain
from gateway.chain.shared_simulations import _MOST
from gateway.chain.smart_wallets import KEY_GAS, sign_authorization
from gateway.domain import Authorization
from gateway.domain.eip3009 import transfer_calldata
from gateway_demo.chain import FAUCET_KEY
from tests.conftest import WALLET
from tests.proof.faults.proxy import SHARED, FaultProxy
from tests.proof.wallets.accounts import BURNS_ALL, BURNS_NEARLY_ALL, MAGIC, answering, hostile
from tests.proof.wallets.test_burning_accounts import NOTHING, delegate

PRICE = 20_000


@pytest.fixture
def chain(delegating_chain):
    return delegating_chain


@pytest.fixture
def proxy(chain):
    with FaultProxy(chain) as proxy:
        yield proxy


@pytest.fixture
async def reader(settings, proxy, monkeypatch):
    # However slow the machine is.
    monkeypatch.setattr("gateway.chain.shared_simulations._PATIENCE_S", 3600.0)
    reader = Web3Chain(attrs.evolve(settings, rpc_urls=(proxy.url,)))
    await reader.head()
    yield reader
    await reader.close()


@pytest.fixture
def sign(settings):
    def sign(account, nonce: int = 1, units: int = PRICE, to: str = WALLET) -> Authorization:
        now = int(time.time())
        unsigned = Authorization(
            sender=account.address.lower(),
            recipient=to.lower(),
            value_units=units,
            valid_after=now - 600,
            valid_before=now + 600,
            nonce=f"0x{nonce:064x}",
            signature=b"",
        )
        return sign_authorization(bytes(account.key), unsigned, settings.chain)

    return sign


def new_payer(chain, units: int = PRICE):
    account = Account.create()
    chain.fund(account.address, eth_wei=0, usdc_units=units)
    return account


def coded(chain, code: bytes):
    """Return an account that delegates to code (EIP-7702)."""
    account = Account.create()
    chain.fund(account.address)
    delegate(chain, account, hostile(chain, code).address, changed=0)
    return account


async def simulate(reader, proxy, *transfers) -> list[bool]:
    """Simulate transfers, and check that they shared one call."""
    proxy.seen.clear()
    answers = await asyncio.gather(*(reader.simulate_plain(one) for one in transfers))
    assert proxy.seen == [SHARED]
    return answers


@pytest.mark.parametrize("count", [1, 2, _MOST])
async def test_plain_accounts_pass(reader, proxy, chain, sign, count):
    transfers = [sign(new_payer(chain)) for _ in range(count)]
    assert await simulate(reader, proxy, *transfers) == [True] * count


async def test_what_fails_or_has_code_is_asked_alone_wherever_it_is(reader, proxy, chain, sign):
    """None of them spoils the transfers before and after it."""
    now = int(time.time())
    good = [new_payer(chain) for _ in range(8)]
    expired = attrs.evolve(sign(good[0], nonce=2), valid_before=now - 1, signature=b"")
    others = [
        sign(new_payer(chain, units=PRICE - 1)),
        sign(coded(chain, answering(MAGIC))),
        sign(coded(chain, BURNS_ALL)),
        sign(coded(chain, BURNS_NEARLY_ALL)),
        sign_authorization(bytes(good[0].key), expired, reader._network),
        # More than the balance after the transfer before it.
        sign(good[1], nonce=2),
    ]
    passing = [sign(one) for one in good]
    mixed = [*passing[:3], others[0], passing[3], *others[1:4], *passing[4:7], *others[4:]]
    answers = await simulate(reader, proxy, *mixed, passing[7])
    assert answers == [*(one not in others for one in mixed), True]


async def test_accounts_whose_code_burns_all_gas_leave_it_to_the_others(reader, proxy, chain, sign):
    burning = [sign(coded(chain, BURNS_ALL)) for _ in range(_MOST - 1)]
    answers = await simulate(reader, proxy, *burning, sign(new_payer(chain)))
    assert answers == [False] * (_MOST - 1) + [True]


async def test_a_spent_authorization_fails(reader, proxy, chain, sign):
    account = new_payer(chain, units=2 * PRICE)
    spent = sign(account)
    chain.send_transaction(FAUCET_KEY, chain.usdc, transfer_calldata(spent))
    assert await simulate(reader, proxy, spent, sign(account, nonce=2)) == [False, True]


async def test_one_nonce_for_two_prices_counts_once(reader, proxy, chain, sign):
    account = new_payer(chain, units=3 * PRICE)
    transfers = [sign(account), sign(account, units=2 * PRICE)]
    assert await simulate(reader, proxy, *transfers) == [True, False]


async def test_money_from_another_sale_of_the_call_does_not_count(reader, proxy, chain, sign):
    """Such as a purchase by the wallet itself, which would be rich after the others."""
    poor = new_payer(chain, units=0)
    gift = sign(new_payer(chain), to=poor.address)
    for transfers in ([gift, sign(poor)], [sign(poor), gift]):
        proxy.seen.clear()
        answers = await asyncio.gather(*(reader.simulate_plain(one) for one in transfers))
        assert [one is gift for one in transfers] == answers
        assert proxy.seen == [SHARED, SHARED]


def _gas_at(program: bytes) -> int:
    """Return the position of a transfer's gas: of PUSH3 before CALL."""
    (at,) = [at for at in range(len(program)) if program[at] == 0x62 and program[at + 4] == 0xF1]
    return at + 1


async def test_a_transfer_that_needs_more_gas_than_its_transaction_has_fails(
    reader, proxy, chain, sign
):
    """The program gives a transfer no more gas than it has alone."""
    plain = sign(new_payer(chain))
    program = reader._simulations._program
    at = _gas_at(program)
    for gas, passes in ((20_000, False), (100_000, True)):
        reader._simulations._program = program[:at] + gas.to_bytes(3) + program[at + 3 :]
        assert await simulate(reader, proxy, plain) == [passes]


async def test_a_transfer_has_the_gas_that_its_transaction_leaves_at_least(chain, reader, sign):
    transfer = transfer_calldata(sign(new_payer(chain)))

    def left_by(data: bytes) -> int:
        unsigned = PragueTransactionBuilder.new_unsigned_dynamic_fee_transaction(
            chain_id=chain.chain_id,
            nonce=0,
            max_priority_fee_per_gas=1,
            max_fee_per_gas=1,
            gas=KEY_GAS,
            to=bytes.fromhex(chain.usdc[2:]),
            value=0,
            data=data,
            access_list=(),
        )
        return KEY_GAS - unsigned.intrinsic_gas

    program = reader._simulations._program
    given = int.from_bytes(program[_gas_at(program) :][:3])
    # Zero bytes are cheaper; calldata without them costs the most.
    assert given == left_by(b"\xff" * len(transfer)) < left_by(transfer)


async def test_a_delegation_that_ended_makes_an_account_plain_again(reader, proxy, chain, sign):
    account = coded(chain, answering(MAGIC))
    assert await simulate(reader, proxy, sign(account)) == [False]
    delegate(chain, account, NOTHING, changed=0)
    assert await simulate(reader, proxy, sign(account)) == [True]
