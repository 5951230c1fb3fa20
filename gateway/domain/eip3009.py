"""USDC as an EIP-3009 token: addresses, events, the signed digest, transfers in a receipt.

Pure functions over bytes, without web3, because they run before any RPC call and before web3 is
imported. Sources: EIP-712, EIP-3009, Circle's FiatTokenV2_2.
"""

import functools
from typing import Any

import attrs

from gateway.concurrency.late_imports import hidden
from gateway.domain import Authorization, Receipt, Transfer

# Without cffi, pycryptodome falls back to ctypes, which is as fast and saves 12 ms and 1 MB. The
# first call of keccak loads pycryptodome, so it must happen inside the block.
with hidden("cffi"):
    from eth_hash.auto import keccak

    keccak(b"")

TRANSFER_TOPIC = "0x" + keccak(b"Transfer(address,address,uint256)").hex()
AUTHORIZATION_USED_TOPIC = "0x" + keccak(b"AuthorizationUsed(address,bytes32)").hex()
AUTHORIZATION_CANCELED_TOPIC = "0x" + keccak(b"AuthorizationCanceled(address,bytes32)").hex()

_TRANSFER_TYPEHASH = keccak(
    b"TransferWithAuthorization(address from,address to,uint256 value,"
    b"uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)

# The largest integer in the database. This is far more than all USDC, so a transfer of this amount
# must be false.
_MAX_UNITS = 2**63
_DOMAIN_TYPEHASH = keccak(
    b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)


def selector(signature: str) -> bytes:
    """Return the 4-byte function selector of a Solidity signature."""
    return keccak(signature.encode())[:4]


BALANCE_OF = selector("balanceOf(address)")
PAUSED = selector("paused()")
IS_BLACKLISTED = selector("isBlacklisted(address)")
DOMAIN_SEPARATOR = selector("DOMAIN_SEPARATOR()")
AUTHORIZATION_STATE = selector("authorizationState(address,bytes32)")
_TRANSFER_VRS = selector(
    "transferWithAuthorization"
    "(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
)
_TRANSFER_BYTES = selector(
    "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)"
)


def word(value: str | int | bytes) -> bytes:
    """Encode an address, integer or 32-byte value as one ABI word of 32 bytes."""
    if isinstance(value, int):
        return value.to_bytes(32, "big")
    raw = bytes.fromhex(value.removeprefix("0x")) if isinstance(value, str) else value
    return raw.rjust(32, b"\0")


def encoded_bytes(value: bytes) -> bytes:
    """ABI-encode `bytes`: the length, then the content padded to whole words."""
    return word(len(value)) + value + b"\0" * (-len(value) % 32)


def uint(answer: bytes) -> int:
    """Decode the integer in a one-word ABI result.

    Raises `ValueError` for any other length: an empty result does not mean zero.
    """
    if len(answer) != 32:  # noqa: PLR2004 - one ABI word
        raise ValueError(f"{len(answer)} bytes where one ABI word was expected")
    return int.from_bytes(answer, "big")


def topic(address: str) -> str:
    """Return an address as a log topic."""
    return "0x" + word(address).hex()


@functools.lru_cache(maxsize=1024)
def checksum_address(address: str) -> str:
    """Return the EIP-55 mixed-case form of a lower-case address."""
    digits = address.lower().removeprefix("0x")
    digest = keccak(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if int(mark, 16) > 7 else digit  # noqa: PLR2004 - EIP-55: the nibble's high bit
        for digit, mark in zip(digits, digest, strict=False)
    )


@attrs.frozen(kw_only=True)
class Network:
    """A chain on which USDC payments are accepted."""

    # The name in the specification and in x402 v1.
    name: str
    chain_id: int
    # The address of USDC's contract, in lower case.
    token: str
    # Name and version in the token's EIP-712 domain.
    token_name: str
    token_version: str = "2"
    # The currency in sentences for buyers.
    money: str = "USDC"
    # States that this money has no value; empty if it has one.
    notice: str = ""

    @property
    def has_value(self) -> bool:
        """Whether this is real money."""
        return not self.notice

    def describe_money(self) -> dict[str, Any]:
        """Return the member `money` of documents and 402s; none for real money."""
        described = {"name": self.money, "hasValue": False, "notice": self.notice}
        return {} if self.has_value else {"money": described}

    @property
    def caip2(self) -> str:
        """The name in x402 v2: `eip155:8453`."""
        return f"eip155:{self.chain_id}"

    @property
    def domain_separator(self) -> bytes:
        """The EIP-712 domain separator that the contract must return."""
        return eip712_domain(self.token_name, self.token_version, self.chain_id, self.token)

    def authorization_key(self, sender: str, nonce: str) -> str:
        """Return the claim key of an EIP-3009 nonce. Nonces are per payer."""
        return f"auth:{self.token}:{sender}:{nonce}".lower()


@functools.lru_cache(maxsize=8)
def eip712_domain(name: str, version: str, chain_id: int, contract: str) -> bytes:
    """Return the separator of an EIP-712 domain."""
    words = word(chain_id) + word(contract)
    return keccak(_DOMAIN_TYPEHASH + keccak(name.encode()) + keccak(version.encode()) + words)


BASE = Network(
    name="base",
    chain_id=8453,
    token="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
    token_name="USD Coin",
)
BASE_SEPOLIA = Network(
    name="base-sepolia",
    chain_id=84532,
    token="0x036cbd53842c5426634e7929541ec2318f3dcf7e",
    token_name="USDC",
    money="test USDC",
    notice="Test money: USDC on base-sepolia has no value.",
)
NETWORKS = {network.name: network for network in (BASE, BASE_SEPOLIA)}


@functools.cache
def play_network(network: Network) -> Network:
    """Return an embedded chain that has this network's name and chain id."""
    return attrs.evolve(
        network,
        money="play USDC",
        notice="Play money on an embedded chain: it has no value. Never pay with real USDC.",
    )


def usual_gas(payments: int) -> int:
    """Return the maximum gas of a settlement if no payer's code runs.

    Measured: 60,000 to 90,000 for one payment, 48,000 to 58,000 for each one of a batch.
    """
    return 40_000 + 60_000 * payments


def transaction_key(tx_hash: str) -> str:
    """Return the claim key of a transaction submitted in the direct flow."""
    return f"tx:{tx_hash.lower()}"


def authorization_digest(authorization: Authorization, network: Network) -> bytes:
    """Return the 32-byte EIP-712 digest that an EIP-3009 authorization signs."""
    struct = keccak(
        _TRANSFER_TYPEHASH
        + word(authorization.sender)
        + word(authorization.recipient)
        + word(authorization.value_units)
        + word(authorization.valid_after)
        + word(authorization.valid_before)
        + word(authorization.nonce)
    )
    return keccak(b"\x19\x01" + network.domain_separator + struct)


def transfer_calldata(authorization: Authorization) -> bytes:
    """Return the calldata of `transferWithAuthorization`.

    A signature of 65 bytes uses the overload with v, r, s; any other signature the one with
    `bytes`.
    """
    head = b"".join(
        word(part)
        for part in (
            authorization.sender,
            authorization.recipient,
            authorization.value_units,
            authorization.valid_after,
            authorization.valid_before,
            authorization.nonce,
        )
    )
    signature = authorization.signature
    if len(signature) == 65:  # noqa: PLR2004 - r ‖ s ‖ v
        return _TRANSFER_VRS + head + word(signature[64]) + signature[:64]
    return _TRANSFER_BYTES + head + word(len(head) + 32) + encoded_bytes(signature)


def transfers_to(wallet: str, receipt: Receipt, network: Network) -> list[Transfer]:
    """Return the USDC transfers to `wallet` in a receipt, in log order.

    A log counts if it is from the token's own contract, has the exact ERC-20 shape, a positive
    amount, and a sender other than the wallet. A transfer directly preceded by `AuthorizationUsed`
    of the same sender is the settlement of that authorization.
    """
    found = []
    logs = {log.index: log for log in receipt.logs if log.address == network.token}
    for log in logs.values():
        is_transfer = log.topics[:1] == (TRANSFER_TOPIC,) and len(log.topics) == 3  # noqa: PLR2004
        if not is_transfer or len(log.data) != 32 or log.topics[2] != topic(wallet):  # noqa: PLR2004
            continue
        sender, amount = "0x" + log.topics[1][-40:], int.from_bytes(log.data, "big")
        if not 0 < amount < _MAX_UNITS or sender == wallet:
            continue
        before = logs.get(log.index - 1)
        is_settlement = (
            before is not None
            and len(before.topics) == 3  # noqa: PLR2004
            and before.topics[:2] == (AUTHORIZATION_USED_TOPIC, log.topics[1])
        )
        found.append(
            Transfer(
                tx_hash=receipt.tx_hash,
                log_index=log.index,
                sender=sender,
                amount_units=amount,
                authorization_key=network.authorization_key(sender, before.topics[2])
                if before is not None and is_settlement
                else None,
                mined=receipt,
            )
        )
    return found
