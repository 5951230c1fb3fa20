"""Play USDC: its addresses, calls, and EIP-3009 authorizations."""

from __future__ import annotations

import secrets
import time
from typing import Any, Final

import attrs
from eth_abi.abi import encode
from eth_keys.datatypes import PrivateKey
from eth_utils.address import to_canonical_address, to_checksum_address
from eth_utils.crypto import keccak

USDC_ADDRESSES: Final = {
    # Base, then Base Sepolia.
    8453: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    84532: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
}
# The names in the EIP-712 domains of the deployed contracts.
USDC_NAMES: Final = {8453: "USD Coin", 84532: "USDC"}
# Storage slots of PlayUSDC.vy: the map behind `balanceOf`, and the total supply.
BALANCES_SLOT: Final = 0
TOTAL_SUPPLY_SLOT: Final = 3

_TRANSFER_TYPE: Final = (
    "TransferWithAuthorization(address from,address to,uint256 value,"
    "uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)
_DOMAIN_TYPE: Final = (
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
_AUTHORIZATION: Final = ["address", "address", "uint256", "uint256", "uint256", "bytes32"]


def call_data(name: str, types: list[str], *values: Any) -> bytes:
    """Encode a call of the function `name(types...)`."""
    return keccak(text=f"{name}({','.join(types)})")[:4] + encode(types, values)


def transfer_call(to: str, units: int) -> bytes:
    """Encode `transfer`."""
    return call_data("transfer", ["address", "uint256"], to, units)


def mint_call(to: str, units: int) -> bytes:
    """Encode `mint`; any account may mint play USDC."""
    return call_data("mint", ["address", "uint256"], to, units)


def balance_call(owner: str) -> bytes:
    """Encode `balanceOf`."""
    return call_data("balanceOf", ["address"], owner)


def balance_slot(owner: str) -> int:
    """Return the storage slot of a balance: Vyper hashes the map's slot and the key."""
    key = to_canonical_address(owner).rjust(32, b"\0")
    return int.from_bytes(keccak(BALANCES_SLOT.to_bytes(32, "big") + key), "big")


def domain_separator(chain_id: int, token: str) -> bytes:
    """Hash the EIP-712 domain of USDC at the address `token`."""
    types = ["bytes32", "bytes32", "bytes32", "uint256", "address"]
    name = keccak(text=USDC_NAMES.get(chain_id, "USDC"))
    values = (keccak(text=_DOMAIN_TYPE), name, keccak(text="2"), chain_id, token)
    return keccak(encode(types, values))


@attrs.frozen(kw_only=True)
class Authorization:
    """A payer's permission to move `units` from `sender` to `to` once, as in EIP-3009.

    Times are in Unix seconds.
    """

    sender: str
    to: str
    units: int
    valid_after: int = 0
    valid_before: int = attrs.field(factory=lambda: int(time.time()) + 300)
    nonce: bytes = attrs.field(factory=lambda: secrets.token_bytes(32))

    def digest(self, chain_id: int, token: str) -> bytes:
        """Return the EIP-712 hash to sign, 32 bytes."""
        struct = encode(["bytes32", *_AUTHORIZATION], (keccak(text=_TRANSFER_TYPE), *self._values))
        return keccak(b"\x19\x01" + domain_separator(chain_id, token) + keccak(struct))

    def sign(self, key: bytes, chain_id: int, token: str) -> bytes:
        """Sign with the payer's key, and return r, s and v (27 or 28) in 65 bytes."""
        signed = PrivateKey(key).sign_msg_hash(self.digest(chain_id, token)).to_bytes()
        return signed[:64] + bytes([27 + signed[64]])

    def call(self, signature: bytes) -> bytes:
        """Encode the overload of `transferWithAuthorization` that takes v, r and s."""
        types = [*_AUTHORIZATION, "uint8", "bytes32", "bytes32"]
        vrs = (signature[64], signature[:32], signature[32:64])
        return call_data("transferWithAuthorization", types, *self._values, *vrs)

    def call_with_bytes(self, signature: bytes) -> bytes:
        """Encode the overload that takes the signature as bytes, of any length."""
        types = [*_AUTHORIZATION, "bytes"]
        return call_data("transferWithAuthorization", types, *self._values, signature)

    @property
    def _values(self) -> tuple[str, str, int, int, int, bytes]:
        ends = (self.valid_after, self.valid_before, self.nonce)
        return (self.sender, self.to, self.units, *ends)


def address_of(key: bytes) -> str:
    """Return the address of a private key, with its checksum."""
    return to_checksum_address(PrivateKey(key).public_key.to_canonical_address())
