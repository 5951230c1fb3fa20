"""x402 verification before any RPC: decoding the header and checking the signed terms."""

import base64
import json
import time
from collections.abc import Iterator

from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_keys import KeyAPI
from eth_keys.backends import CoinCurveECCBackend, NativeECCBackend
from gateway_bench import INSTANT
from place import WALLET, median_us
from rich.table import Table

from gateway.chain.smart_wallets import is_signed_by_key
from gateway.contracts import Quote
from gateway.domain.eip3009 import BASE, authorization_digest, checksum_address
from gateway_x402.verifier import X402Verifier

_TARGET_US = 400.0
_TYPES = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}
_DOMAIN = {
    "name": "USD Coin",
    "version": "2",
    "chainId": BASE.chain_id,
    "verifyingContract": checksum_address(BASE.token),
}


def _signed(now: int) -> tuple[dict, bytes]:
    """Return (message, signature) as a wallet makes them."""
    account = Account.create()
    message = {
        "from": account.address,
        "to": WALLET,
        "value": INSTANT.price_units,
        "validAfter": now - 60,
        "validBefore": now + 300,
        "nonce": b"\x07" * 32,
    }
    return message, bytes(account.sign_typed_data(_DOMAIN, _TYPES, message).signature)


def _header(message: dict, signature: bytes) -> str:
    authorization = {name: str(value) for name, value in message.items()}
    authorization["nonce"] = "0x" + message["nonce"].hex()
    payload = {"signature": "0x" + signature.hex(), "authorization": authorization}
    envelope = {"x402Version": 1, "scheme": "exact", "network": "base", "payload": payload}
    return base64.b64encode(json.dumps(envelope).encode()).decode()


def _rows() -> Iterator[tuple[str, float, float | None]]:
    """Yield (what, microseconds, target)."""
    now = time.time()
    message, signature = _signed(int(now))
    header = _header(message, signature)
    verifier = X402Verifier(BASE, chain=None)  # type: ignore[arg-type]  # no RPC happens here
    quote = Quote(
        endpoint=INSTANT,
        price_units=INSTANT.price_units,
        wallet=WALLET,
        network=BASE,
        resource_url="https://gateway.example.com/api/x402/instant",
    )
    proof = verifier.read(header)
    digest = authorization_digest(proof.authorization, BASE)
    vrs = signature[:64] + bytes([signature[64] - 27])

    def ours() -> None:
        proof = verifier.read(header)
        verifier.check_terms(proof, quote, now)
        is_signed_by_key(proof.authorization, BASE)

    def recover_with(backend: type) -> float:
        keys = KeyAPI(backend())
        return median_us(lambda: keys.ecdsa_recover(digest, keys.Signature(vrs)).to_address(), 100)

    def theirs() -> str:
        return Account.recover_message(
            encode_typed_data(_DOMAIN, _TYPES, message), signature=signature
        )

    yield "gateway: decode, terms, signature", median_us(ours, 2_000), _TARGET_US
    yield "  of that: decode the header", median_us(lambda: verifier.read(header), 2_000), None
    yield "eth_account: recover_message(encode_typed_data(…))", median_us(theirs, 200), None
    yield "eth_keys, recovery only, coincurve", recover_with(CoinCurveECCBackend), None
    yield "eth_keys, recovery only, pure Python", recover_with(NativeECCBackend), None


def run() -> list[Table]:
    """Measure, and return the tables."""
    table = Table(
        "per payment", "µs", "to ours", "target", title="x402 verification before any RPC"
    )
    ours = 0.0
    for what, us, target in _rows():
        ours = ours or us
        goal = f"≤ {target:,.0f}" if target else ""
        table.add_row(what, f"{us:,.0f}", f"{us / ours:.1f}x", goal)
    return [table]
