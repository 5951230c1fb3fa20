"""Authorizations of payers: as payments by x402, cancelled, and several in one transaction."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway import Authorization as SignedByUs
    from gateway_demo.chain import PlayChain
    from gateway_demo.token import Authorization
    from tests.conftest import Payer


def payload_of(signed: Authorization, signature: bytes, *, version: int = 1) -> dict:
    payload = {
        "signature": "0x" + signature.hex(),
        "authorization": {
            "from": signed.sender,
            "to": signed.to,
            "value": str(signed.units),
            "validAfter": str(signed.valid_after),
            "validBefore": str(signed.valid_before),
            "nonce": "0x" + signed.nonce.hex(),
        },
    }
    if version == 1:
        return {"x402Version": 1, "scheme": "exact", "network": "base", "payload": payload}
    accepted = {
        "scheme": "exact",
        "network": "eip155:8453",
        "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "amount": str(signed.units),
        "payTo": signed.to,
        "maxTimeoutSeconds": 300,
        "extra": {"name": "USD Coin", "version": "2"},
    }
    return {"x402Version": 2, "payload": payload, "accepted": accepted, "resource": {}}


def signed_by(secret: bytes, nonce: int = 1, *, to: str = "0x" + "22" * 20) -> SignedByUs:
    """Return an authorization of 0.02 USDC, as the gateway reads it, by a plain key on Base."""
    from gateway.chain.keys import address_of
    from gateway.chain.smart_wallets import sign_authorization
    from gateway.domain import Authorization
    from gateway.domain.eip3009 import BASE

    unsigned = Authorization(
        sender=address_of(secret).lower(),
        recipient=to,
        value_units=20_000,
        valid_after=0,
        valid_before=2_000,
        nonce=f"0x{nonce:064x}",
        signature=b"",
    )
    return sign_authorization(secret, unsigned, BASE)


def header_of(payload: dict) -> str:
    return base64.b64encode(json.dumps(payload).encode()).decode()


def decoded(header: str) -> dict:
    """Return the JSON in a Base64 header."""
    return json.loads(base64.b64decode(header, validate=True))


def cancel(chain: PlayChain, payer: Payer, nonce: bytes) -> None:
    """Let the payer cancel an authorization (EIP-3009), at another's gas."""
    from gateway_demo.chain import FAUCET_KEY

    chain.send_transaction(FAUCET_KEY, chain.usdc, cancel_call(chain, payer, nonce))


def cancel_call(chain: PlayChain, payer: Payer, nonce: bytes) -> bytes:
    """Return the call that cancels an authorization, signed by the payer."""
    from eth_abi.abi import encode
    from eth_keys.datatypes import PrivateKey
    from eth_utils.crypto import keccak

    from gateway_demo.token import call_data, domain_separator

    typehash = keccak(text="CancelAuthorization(address authorizer,bytes32 nonce)")
    struct = encode(["bytes32", "address", "bytes32"], [typehash, payer.account.address, nonce])
    digest = keccak(b"\x19\x01" + domain_separator(chain.chain_id, chain.usdc) + keccak(struct))
    signature = PrivateKey(payer.account.key).sign_msg_hash(digest).to_bytes()
    return call_data(
        "cancelAuthorization",
        ["address", "bytes32", "uint8", "bytes32", "bytes32"],
        *(payer.account.address, nonce, 27 + signature[64], signature[:32], signature[32:64]),
    )


def multicall(*calls: tuple[str, bytes]) -> bytes:
    """Encode a call of Multicall3 that makes several, all or nothing."""
    from gateway_demo.token import call_data

    entries = [(target, False, data) for target, data in calls]
    return call_data("aggregate3", ["(address,bool,bytes)[]"], entries)
