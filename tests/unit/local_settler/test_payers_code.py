"""How often the chain is asked whether a payer has code; the chain is scripted."""

from types import SimpleNamespace

import attrs
import pytest

from gateway import Authorization, ChainUnavailable
from gateway.chain.keys import address_of
from gateway.chain.smart_wallets import sign_authorization
from gateway.domain.eip3009 import BASE
from gateway_local_settler.settler import REMEMBERED_S, Payers

SECRET = b"\1" * 32


@attrs.define
class World:
    """A chain and a clock."""

    code: bytes = b""
    is_silent: bool = False
    now_s: float = 1_000.0
    asked: int = 0

    async def code_of(self, address, *, at=None):
        self.asked += 1
        if self.is_silent:
            raise ChainUnavailable("silent")
        return self.code


@pytest.fixture
def world():
    return World()


@pytest.fixture
def payers(world):
    return Payers(
        SimpleNamespace(
            chain=SimpleNamespace(code=world.code_of),
            settings=SimpleNamespace(chain=BASE),
            now=lambda: world.now_s,
        )
    )


def signed(nonce: int = 1, signature: bytes | None = None) -> Authorization:
    unsigned = Authorization(
        sender=address_of(SECRET).lower(),
        recipient="0x" + "22" * 20,
        value_units=20_000,
        valid_after=0,
        valid_before=2_000,
        nonce=f"{nonce:064x}",
        signature=signature or b"",
    )
    return sign_authorization(SECRET, unsigned, BASE) if signature is None else unsigned


async def test_a_plain_account_that_buys_again_within_two_minutes_is_not_asked_about(payers, world):
    assert [await payers.has_code(signed(nonce)) for nonce in range(3)] == [False] * 3
    assert world.asked == 1


async def test_code_that_an_account_gets_is_seen_two_minutes_later(payers, world):
    assert not await payers.has_code(signed())
    world.code, world.now_s = b"\xef", world.now_s + REMEMBERED_S
    assert await payers.has_code(signed())


async def test_an_account_whose_code_signed_is_asked_about_each_time(payers, world):
    assert not await payers.has_code(signed())
    world.code = b"\xef"
    assert await payers.has_code(signed(signature=b"\7" * 80))
    assert world.asked == 2


async def test_a_silent_chain_is_no_answer(payers, world):
    world.is_silent = True
    with pytest.raises(ChainUnavailable):
        await payers.has_code(signed())
    world.is_silent, world.code = False, b"\xef"
    assert await payers.has_code(signed())
