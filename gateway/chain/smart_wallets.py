"""Signatures of plain accounts and smart wallets, and the call that settles each.

A plain account signs with its key; a smart wallet's code verifies a signature (EIP-1271). A wallet
that is not deployed yet wraps its signature with the call of its factory (ERC-6492). Such a payment
settles in one transaction through Multicall3: the factory's call, then the token's.
"""

import functools

import attrs
from btclib_secp256k1 import recovery
from eth_hash.auto import keccak

from gateway.chain.transactions import MULTICALL3, Call, aggregate3, read_single_call
from gateway.contracts.chain import CallReverted, Chain
from gateway.domain import Authorization, Block
from gateway.domain.eip3009 import (
    Network,
    authorization_digest,
    encoded_bytes,
    selector,
    transfer_calldata,
    word,
)

# For `isValidSignature`. A passkey verified in Solidity takes 330,000.
SIGNATURE_CALL_GAS = 400_000
# Half of the curve's order, the limit of s (EIP-2).
_HALF_N = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_IS_VALID_SIGNATURE = selector("isValidSignature(bytes32,bytes)")
# The magic value of EIP-1271.
_ACCEPTED = _IS_VALID_SIGNATURE.ljust(32, b"\0")

# A transfer from a plain key uses 60,000 to 90,000.
KEY_GAS = 150_000
# A transfer, and a passkey verified in Solidity (up to 300,000).
WALLET_GAS = 400_000
# The same plus the wallet's deployment. Coinbase's wallets take 190,000 to 290,000.
DEPLOYMENT_GAS = 1_000_000
# Bytes of the factory's address and the offsets of calldata and signature.
_HEAD = 3 * 32
# The suffix of a wrapped signature (ERC-6492).
_MAGIC = bytes.fromhex("6492" * 16)


def sign_digest(secret: bytes, digest: bytes) -> bytes:
    """Sign a digest deterministically; returns 65 bytes (r ‖ s ‖ v)."""
    signature, recovery_id = recovery.sign(digest, secret)
    return signature + bytes([27 + recovery_id])


def sign_authorization(secret: bytes, unsigned: Authorization, network: Network) -> Authorization:
    """Return an EIP-3009 authorization with its sender's signature, 65 bytes (r ‖ s ‖ v).

    Deterministic.
    """
    signature = sign_digest(secret, authorization_digest(unsigned, network))
    return attrs.evolve(unsigned, signature=signature)


def recover_signer(digest: bytes, signature: bytes) -> str | None:
    """Return the lower-case address whose key signed, or None.

    As strict as the token contract, unlike libraries: 65 bytes, v 27 or 28, low s.
    """
    if len(signature) != 65 or signature[64] not in (27, 28):  # noqa: PLR2004 - r ‖ s ‖ v
        return None
    if int.from_bytes(signature[32:64], "big") > _HALF_N:
        return None
    try:
        key = recovery.recover(digest, signature[:64], signature[64] - 27, compressed=False)
    except ValueError:
        return None
    return "0x" + keccak(key[1:])[12:].hex()


async def is_signed_by(chain: Chain, account: str, digest: bytes, signature: bytes) -> bool:
    """Whether an account signed: by its key, or by its code at the newest block (EIP-1271).

    False if the code reverts, requests an off-chain read (CCIP), uses too much gas, or returns
    anything but the magic value. Raises `ChainUnavailable`.
    """
    if recover_signer(digest, signature) == account.lower():
        return True
    call = _IS_VALID_SIGNATURE + word(digest) + word(64) + encoded_bytes(signature)
    try:
        answer = await chain.call(call, to=account, gas=SIGNATURE_CALL_GAS)
    except CallReverted:
        return False
    return answer == _ACCEPTED


@attrs.frozen(kw_only=True)
class Deployment:
    """The parts of an ERC-6492 signature: the factory's call, and the wallet's signature."""

    factory: str
    """The address in lower case."""
    calldata: bytes = attrs.field(repr=False)
    signature: bytes = attrs.field(repr=False)

    @property
    def wrapped(self) -> bytes:
        """The ERC-6492 encoding."""
        calldata = encoded_bytes(self.calldata)
        offsets = word(_HEAD) + word(_HEAD + len(calldata))
        return word(self.factory) + offsets + calldata + encoded_bytes(self.signature) + _MAGIC

    @property
    def call(self) -> tuple[str, bytes]:
        """The deploying contract and its calldata.

        Coinbase's wallets name Multicall3 as their factory, with the factory's call inside.
        """
        inner = read_single_call(self.calldata) if self.factory == MULTICALL3 else None
        return inner or (self.factory, self.calldata)


def unwrap_signature(signature: bytes) -> Deployment | None:
    """Return the parts of an ERC-6492 signature; None for any other signature.

    Only the canonical encoding is accepted, so offsets stay in range and parts do not overlap.
    """
    if not signature.endswith(_MAGIC):
        return None
    calldata = _bytes_at(signature, _HEAD)
    deployment = Deployment(
        factory="0x" + signature[12:32].hex(),
        calldata=calldata,
        signature=_bytes_at(signature, _HEAD + len(encoded_bytes(calldata))),
    )
    return deployment if deployment.wrapped == signature else None


def _bytes_at(encoded: bytes, offset: int) -> bytes:
    """Decode ABI `bytes` at an offset, truncated at the end of the input."""
    length = int.from_bytes(encoded[offset : offset + 32], "big")
    return encoded[offset + 32 :][:length]


# A purchase asks three times. An authorization in the cache has at most 32 KB, its signature.
@functools.lru_cache(maxsize=128)
def is_signed_by_key(authorization: Authorization, network: Network) -> bool:
    """Whether the sender's own key signed, without an RPC call."""
    digest = authorization_digest(authorization, network)
    return recover_signer(digest, authorization.signature) == authorization.sender


def unwrap_authorization(authorization: Authorization) -> Authorization:
    """Return the authorization with the wallet's own signature, without the ERC-6492 wrapper."""
    deployment = unwrap_signature(authorization.signature)
    if deployment is None:
        return authorization
    return attrs.evolve(authorization, signature=deployment.signature)


async def deploys_wallet(authorization: Authorization, chain: Chain) -> bool:
    """Whether the settlement deploys this payer's wallet, at our expense."""
    if unwrap_signature(authorization.signature) is None:
        return False
    return not await chain.code(authorization.sender)


async def has_code(authorization: Authorization, chain: Chain, *, at: Block | None = None) -> bool:
    """Whether code verifies this payer's signature, now or after its deployment.

    Such an account can make a settlement revert after all checks passed.
    """
    if unwrap_signature(authorization.signature) is not None:
        return True
    return bool(await chain.code(authorization.sender, at=at))


@functools.lru_cache(maxsize=128)
def key_call(authorization: Authorization, network: Network) -> Call:
    """Return the call for a signature by the sender's own key. A sale asks four times."""
    return Call(to=network.token, data=transfer_calldata(authorization), gas=KEY_GAS)


def wallet_call(authorization: Authorization, network: Network) -> Call:
    """Return the call for an account with code, which verifies the signature for the token."""
    data = transfer_calldata(unwrap_authorization(authorization))
    return Call(to=network.token, data=data, gas=WALLET_GAS)


def deployment_call(authorization: Authorization, network: Network, deployment: Deployment) -> Call:
    """Return the call that deploys a wallet and transfers from it, atomically.

    The factory's call may fail: if another transaction has just deployed the wallet, the transfer
    still works. If the wallet does not exist, the token refuses the transfer, and everything
    reverts.
    """
    transfer = transfer_calldata(unwrap_authorization(authorization))
    factory, create = deployment.call
    data = aggregate3([(factory, True, create), (network.token, False, transfer)])
    return Call(to=MULTICALL3, data=data, gas=DEPLOYMENT_GAS)


async def settlement_call(authorization: Authorization, network: Network, chain: Chain) -> Call:
    """Return the call that settles an accepted authorization now.

    It omits the factory of a deployed wallet, which could use up all gas.
    """
    if is_signed_by_key(authorization, network):
        return key_call(authorization, network)
    deployment = unwrap_signature(authorization.signature)
    if deployment is None or await chain.code(authorization.sender):
        return wallet_call(authorization, network)
    return deployment_call(authorization, network, deployment)
