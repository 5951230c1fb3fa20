"""The signer of a digest: strict recovery, EIP-1271, and the parts of an ERC-6492 signature."""

import json

import attrs
import pytest
from eth_abi.abi import encode
from eth_account import Account
from eth_keys.datatypes import PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from gateway.chain.client import Web3Chain
from gateway.chain.smart_wallets import (
    SIGNATURE_CALL_GAS,
    Deployment,
    is_signed_by,
    recover_signer,
    unwrap_signature,
)
from gateway.domain import Authorization
from gateway.domain.eip3009 import encoded_bytes, transfer_calldata
from gateway.errors import ChainUnavailable
from gateway_demo.chain.server import RpcServer
from tests.proof.wallets import accounts
from tests.proof.wallets.accounts import (
    MAGIC,
    WRAPPED,
    answering,
    hostile,
    reverting,
    wrap,
    yes_after,
)

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
DIGEST = bytes(range(32))


def sign(key: bytes, digest: bytes = DIGEST) -> bytes:
    signed = PrivateKey(key).sign_msg_hash(digest).to_bytes()
    return signed[:64] + bytes([27 + signed[64]])


# -- recovery


def test_a_signature_tells_whose_key_made_it():
    account = Account.create()
    assert recover_signer(DIGEST, sign(account.key)) == account.address.lower()
    assert recover_signer(bytes(32), sign(account.key)) != account.address.lower()


@pytest.mark.parametrize(
    "change",
    [
        lambda s: b"",
        lambda s: s[:64],
        lambda s: s + b"\0",
        lambda s: s[:64] + bytes([s[64] - 27]),
        lambda s: s[:64] + b"\x1d",
        lambda s: (
            s[:32]
            + (ORDER - int.from_bytes(s[32:64], "big")).to_bytes(32, "big")
            + bytes([55 - s[64]])
        ),
        lambda s: bytes(32) + s[32:],
        lambda s: s[:32] + bytes(32) + s[64:],
        lambda s: ORDER.to_bytes(32, "big") + s[32:],
        lambda s: b"\xff" * 32 + s[32:],
    ],
    ids=["none", "64", "66", "v 0", "v 29", "high s", "r 0", "s 0", "r is the order", "r huge"],
)
def test_what_the_token_would_not_recover_is_nobodys(change):
    assert recover_signer(DIGEST, change(sign(Account.create().key))) is None


# -- asking an account


@pytest.fixture
async def reader(settings):
    chain = Web3Chain(settings)
    yield chain
    await chain.close()


async def test_a_plain_account_signs_with_its_key(reader):
    account, other = Account.create(), Account.create()
    signature = sign(account.key)
    assert await is_signed_by(reader, account.address, DIGEST, signature)
    assert not await is_signed_by(reader, other.address, DIGEST, signature)
    assert not await is_signed_by(reader, account.address, DIGEST, b"")


async def test_a_smart_account_signs_with_its_owners_key(reader, smart):
    assert await is_signed_by(reader, smart.address, DIGEST, sign(smart.owner.key))
    assert not await is_signed_by(reader, smart.address, bytes(32), sign(smart.owner.key))
    assert not await is_signed_by(reader, smart.address, DIGEST, sign(Account.create().key))


async def test_the_precompiles_sign_nothing(reader):
    for number in range(1, 5):  # 4 gives back what it is sent
        account = f"0x{number:040x}"
        assert not await is_signed_by(reader, account, DIGEST, b"\1" * 65), number


NOES = {
    "nothing": answering(b""),
    "4 bytes": answering(MAGIC[:4]),
    "31 bytes": answering(MAGIC[:31]),
    "33 bytes": answering(MAGIC + b"\0"),
    "64 bytes": answering(MAGIC * 2),
    "dirt behind the magic": answering(MAGIC[:31] + b"\1"),
    "the magic on the right": answering(MAGIC[:4].rjust(32, b"\0")),
    "zero": answering(bytes(32)),
    "a revert with the magic": reverting(MAGIC),
    "an invalid instruction": b"\xfe",
    "an unknown instruction": b"\x0c",
    "no jump destination": bytes.fromhex("600356"),
    "all gas used": accounts.BURNS_ALL,
}


@pytest.mark.parametrize("runtime", NOES.values(), ids=NOES)
async def test_anything_but_the_one_magic_word_is_a_no(reader, chain, runtime):
    account = hostile(chain, runtime).address
    assert await is_signed_by(reader, account, DIGEST, b"\1" * 65) is False


async def test_asking_has_a_gas_limit(reader, chain):
    plenty = f"63{SIGNATURE_CALL_GAS - 30_000:08x}5a11600e57600080fd5b"  # GAS > limit - 30,000
    exact = hostile(chain, yes_after(plenty)).address
    assert await is_signed_by(reader, exact, DIGEST, b"")
    more = f"63{SIGNATURE_CALL_GAS:08x}5a11600e57600080fd5b"
    assert not await is_signed_by(reader, hostile(chain, yes_after(more)).address, DIGEST, b"")


FAILED_CALLS = {  # what nodes say of a call that fails without a revert
    "geth": (-32000, "out of gas"),
    "reth": (-32003, "out of gas: gas required exceeds: 400000"),
    "geth's opcode": (-32000, "invalid opcode: INVALID"),
    "geth's stack": (-32000, "stack underflow (0 <=> 1)"),
    "geth's jump": (-32000, "invalid jump destination"),
    "reth's opcode": (-32000, "EVM error: InvalidFEOpcode"),
    "nethermind": (-32015, "VM execution error."),
}


@pytest.mark.parametrize(("code", "message"), FAILED_CALLS.values(), ids=FAILED_CALLS)
async def test_a_call_that_fails_is_a_no_in_the_words_of_every_node(settings, chain, code, message):
    assert await _asked(settings, chain, code, message) is False


@pytest.mark.parametrize("message", ["rate limit exceeded", "header not found", "internal error"])
async def test_an_endpoint_that_cannot_answer_is_neither_yes_nor_no(settings, chain, message):
    with pytest.raises(ChainUnavailable):
        await _asked(settings, chain, -32000, message)


async def _asked(settings, chain, code, message) -> bool:
    """Call an account through an endpoint with this response."""
    account = Account.create().address

    def answer(body: bytes) -> bytes:
        request = json.loads(body)
        if account.lower() not in json.dumps(request["params"]).lower():
            return chain.rpc.answer(body)
        error = {"code": code, "message": message}
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()

    server = RpcServer(answer, host="127.0.0.1", port=0)
    server.start()
    reader = Web3Chain(attrs.evolve(settings, rpc_urls=(server.url,)))
    try:
        return await is_signed_by(reader, account, DIGEST, b"")
    finally:
        await reader.close()
        server.stop()


# -- ERC-6492's wrapper and the token's calldata, against an ABI library


parts = st.tuples(
    st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex()),
    st.binary(max_size=200),
    st.binary(max_size=200),
)


@given(parts)
def test_a_wrapped_signature_is_taken_apart_as_it_was_wrapped(given_parts):
    factory, calldata, signature = given_parts
    expected = Deployment(factory=factory, calldata=calldata, signature=signature)
    assert unwrap_signature(wrap(*given_parts)) == expected


@given(st.binary(max_size=400), st.booleans())
def test_bytes_of_any_kind_are_taken_apart_or_not_but_never_raise(raw, has_magic):
    signature = raw + WRAPPED if has_magic else raw
    deployment = unwrap_signature(signature)
    assert deployment is None or deployment.wrapped == signature


@given(parts, st.integers(0, 1_000), st.integers(0, 255))
def test_one_changed_byte_is_never_overlooked(given_parts, place, value):
    wrapped = bytearray(wrap(*given_parts))
    wrapped[place % len(wrapped)] = value
    deployment = unwrap_signature(bytes(wrapped))
    if deployment is not None:
        again = (deployment.factory, deployment.calldata, deployment.signature)
        assert wrap(*again) == bytes(wrapped)


@given(st.binary(max_size=300))
def test_bytes_are_encoded_as_the_abi_does(value):
    assert encoded_bytes(value) == encode(["bytes"], [value])[32:]


@pytest.mark.parametrize("length", [0, 64, 65, 66, 96, 1_000])
def test_the_calldata_is_what_the_tokens_abi_wants(length):
    from gateway_demo.token import Authorization as Permit

    permit = Permit(sender="0x" + "11" * 20, to="0x" + "22" * 20, units=7, valid_before=9)
    signature = bytes(i % 251 for i in range(length))
    signed = Authorization(
        sender=permit.sender,
        recipient=permit.to,
        value_units=7,
        valid_after=0,
        valid_before=9,
        nonce="0x" + permit.nonce.hex(),
        signature=signature,
    )
    expected = permit.call(signature) if length == 65 else permit.call_with_bytes(signature)
    assert transfer_calldata(signed) == expected
