"""Signs authorizations, and finds who signed a digest.

A plain account signs by its key, a smart account by its code (EIP-1271).
"""

import attrs
from btclib_secp256k1 import recovery
from eth_hash.auto import keccak

from gateway.contracts.chain import CallReverted, Chain
from gateway.domain import Authorization
from gateway.domain.eip3009 import Network, authorization_digest, encoded_bytes, selector, word

# For one call of `isValidSignature`. A passkey that is checked in Solidity takes 330,000.
SIGNATURE_CALL_GAS = 400_000
# Half of the curve's order: EIP-2 wants an s that is not above it.
_HALF_N = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_IS_VALID_SIGNATURE = selector("isValidSignature(bytes32,bytes)")
# By EIP-1271 a contract says yes with the selector itself.
_MAGIC = _IS_VALID_SIGNATURE.ljust(32, b"\0")


def sign_digest(secret: bytes, digest: bytes) -> bytes:
    """Return the signature of a digest, 65 bytes (r ‖ s ‖ v), always the same."""
    signature, recovery_id = recovery.sign(digest, secret)
    return signature + bytes([27 + recovery_id])


def sign_authorization(secret: bytes, unsigned: Authorization, network: Network) -> Authorization:
    """Return an EIP-3009 authorization with its sender's signature, 65 bytes (r ‖ s ‖ v).

    Signing the same authorization again gives the same bytes.
    """
    signature = sign_digest(secret, authorization_digest(unsigned, network))
    return attrs.evolve(unsigned, signature=signature)


def recover_signer(digest: bytes, signature: bytes) -> str | None:
    """Return the lower-case address whose key signed, or None.

    This is as strict as the token contract: 65 bytes, v 27 or 28, low s. Libraries are laxer.
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
    """Tell whether an account signed: its key did, or its code says so at the newest block.

    Code says no where it reverts, asks for a read elsewhere (CCIP), uses too much gas, or answers
    anything but the one magic word. Raises `ChainUnavailable` where the chain does not answer.
    """
    if recover_signer(digest, signature) == account.lower():
        return True
    call = _IS_VALID_SIGNATURE + word(digest) + word(64) + encoded_bytes(signature)
    try:
        answer = await chain.call(call, to=account, gas=SIGNATURE_CALL_GAS)
    except CallReverted:
        return False
    return answer == _MAGIC
