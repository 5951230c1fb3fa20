"""Checks of a signed authorization: cheap and pure ones first, then one simulated call."""

import asyncio
from collections.abc import Mapping, Sequence

from coincurve import PublicKey
from eth_hash.auto import keccak

from gateway import (
    Authorization,
    CallReverted,
    Chain,
    Challenge,
    Payment,
    PaymentRequired,
    Proof,
    Quote,
)
from gateway.usdc import (
    AUTHORIZATION_STATE,
    BALANCE_OF,
    Network,
    authorization_digest,
    settlement_call,
    word,
)
from gateway_x402 import messages

MIN_REMAINING_S = 20  # time to settle before the authorization expires
MAX_REMAINING_S = 600  # a longer one would keep an unknown outcome open as long
_HALF_N = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0  # EIP-2, low s
_SIGNATURE = "invalid_exact_evm_payload_signature"
_NOT_YET = "invalid_exact_evm_payload_authorization_valid_after"


class X402Verifier:
    """The X402 flow on one network. Implements `gateway.AuthorizationVerifier`."""

    header_names: Sequence[str] = ("X-PAYMENT", "PAYMENT-SIGNATURE")

    def __init__(self, network: Network, chain: Chain) -> None:
        self._network = network
        self._chain = chain

    def challenge(self, quote: Quote, reason: str | None, version: int) -> Challenge:
        """Return the 402 for a quote."""
        return messages.challenge(quote, reason, version)

    def read(self, header: str) -> Proof:
        """Decode a payment header."""
        return messages.decode(header)

    def receipt_headers(self, proof: Proof, payment: Payment) -> Mapping[str, str]:
        """Return the header that goes with the 200."""
        name = self._network.name if proof.version == 1 else self._network.caip2
        return messages.receipt(proof, payment, name)

    def check_terms(self, proof: Proof, quote: Quote, now: float) -> None:
        """Compare what was signed with what was asked; no RPC."""
        signed, wallet = proof.authorization, quote.wallet.lower()
        expected_network = self._network.name if proof.version == 1 else self._network.caip2
        price = quote.price_units
        checks = {
            "unsupported_scheme": proof.scheme == "exact",
            "invalid_network": proof.network == expected_network,
            "invalid_payload": proof.asset is None or proof.asset.lower() == self._network.token,
            "invalid_exact_evm_payload_recipient_mismatch": signed.recipient == wallet
            and (proof.pay_to is None or proof.pay_to.lower() == wallet),
            "invalid_exact_evm_payload_authorization_value_mismatch": signed.value_units == price
            and (proof.amount is None or proof.amount == str(price)),
            _NOT_YET: signed.valid_after <= now,
            "invalid_exact_evm_payload_authorization_valid_before": now + MIN_REMAINING_S
            <= signed.valid_before
            <= now + MAX_REMAINING_S,
        }
        for reason, holds in checks.items():
            if not holds:
                raise PaymentRequired(reason)
        if _signer(signed, self._network) != signed.sender:
            raise PaymentRequired(_SIGNATURE)

    async def check_chain(self, authorization: Authorization) -> bool:
        """Simulate the exact call; where the token refuses it, find out why.

        Returns False where the nonce is spent. Raises `PaymentRequired` otherwise.
        """
        try:
            to, data, gas = settlement_call(authorization, self._network)
            await self._chain.call(data, to=to, gas=gas)
        except CallReverted:
            sender = word(authorization.sender)
            spent, balance, head = await asyncio.gather(
                self._chain.call_uint(AUTHORIZATION_STATE + sender + word(authorization.nonce)),
                self._chain.call_uint(BALANCE_OF + sender),
                self._chain.head(),
            )
            if spent:
                return False
            if balance < authorization.value_units:
                raise PaymentRequired("invalid_exact_evm_insufficient_balance") from None
            if head.timestamp <= authorization.valid_after:  # the contract wants it in the past
                raise PaymentRequired(_NOT_YET) from None
            raise PaymentRequired(_SIGNATURE) from None  # the token itself refuses the signature
        return True


def _signer(authorization: Authorization, network: Network) -> str:
    """Return the address whose key signed, under the token contract's own strict rules.

    Raises `PaymentRequired` where the contract would refuse: not 65 bytes, v not 27 or 28,
    high s. Library recovery alone is laxer than the contract.
    """
    signature = authorization.signature
    if len(signature) != 65 or signature[64] not in (27, 28):  # noqa: PLR2004 - r ‖ s ‖ v
        raise PaymentRequired(_SIGNATURE)
    if int.from_bytes(signature[32:64], "big") > _HALF_N:
        raise PaymentRequired(_SIGNATURE)
    recoverable = signature[:64] + bytes([signature[64] - 27])
    digest = authorization_digest(authorization, network)
    try:
        key = PublicKey.from_signature_and_message(recoverable, digest, hasher=None)
    except ValueError:
        raise PaymentRequired(_SIGNATURE) from None
    return "0x" + keccak(key.format(compressed=False)[1:])[12:].hex()
