"""The x402 flow: its challenges, and the terms of a payment header."""

import operator
from collections.abc import Mapping, Sequence

import attrs

from gateway import (
    Authorization,
    Chain,
    Challenge,
    Payment,
    PaymentRequired,
    Quote,
)
from gateway.chain.authorization_checks import AuthorizationChecks, check_signed_terms
from gateway.domain.eip3009 import Network
from gateway_x402 import messages

# Cached challenges, 6 KB each. More than all slugs, prices and versions together.
_CACHE_SIZE = 4096


# A challenge without a reason does not depend on these. A new field of a quote is compared.
NOT_SHOWN = frozenset({"earlier_units", "body_digest", "maker"})
# A tuple. Values that are the same objects are equal at once, as most are.
_shown = operator.attrgetter(
    *(field.name for field in attrs.fields(Quote) if field.name not in NOT_SHOWN)
)


class X402Verifier:
    """The x402 flow on one network. Implements `gateway.AuthorizationVerifier`."""

    header_names: Sequence[str] = ("X-PAYMENT", "PAYMENT-SIGNATURE")

    def __init__(
        self,
        network: Network,
        chain: Chain,
        factories: Sequence[str] = (),
        *,
        name: str = "",
        cache_size: int = _CACHE_SIZE,
    ) -> None:
        """`name` is the gateway's, used in a Bazaar's listing."""
        self._network = network
        self._checks = AuthorizationChecks(network, chain, factories)
        self._name = name
        self._cache_size = cache_size
        self._kept: dict[tuple[str, int, int], tuple[Quote, Challenge]] = {}

    def challenge(self, quote: Quote, reason: str | None, version: int) -> Challenge:
        """Return the 402 for a quote. Without a reason it is cached.

        A cached challenge is used while all that it may show is the same.
        """
        if reason is not None:
            return messages.challenge(quote, reason, version, name=self._name)
        key = (quote.endpoint.slug, quote.price_units, version)
        kept = self._kept.get(key)
        if kept is None or _shown(kept[0]) != _shown(quote):
            if len(self._kept) >= self._cache_size:
                self._kept.clear()
            made = messages.challenge(quote, None, version, name=self._name)
            kept = self._kept[key] = (quote, made)
        elif kept[0].endpoint is not quote.endpoint:
            # So that the next comparison finds the same object.
            self._kept[key] = (quote, kept[1])
        return kept[1]

    def read(self, header: str) -> messages.X402Proof:
        """Decode a payment header."""
        return messages.decode(header)

    def receipt_headers(self, proof: messages.X402Proof, payment: Payment) -> Mapping[str, str]:
        """Return the response header that describes the settlement."""
        name = self._network.name if proof.version == 1 else self._network.caip2
        return messages.receipt(proof, payment, name)

    def check_terms(self, proof: messages.X402Proof, quote: Quote, now: float) -> None:
        """Compare the signed terms with the quote, without the chain."""
        wallet, price = quote.wallet.lower(), quote.price_units
        expected_network = self._network.name if proof.version == 1 else self._network.caip2
        checks = {
            "unsupported_scheme": proof.scheme == "exact",
            "invalid_network": proof.network == expected_network,
            "invalid_payload": proof.asset is None or proof.asset.lower() == self._network.token,
            "invalid_exact_evm_payload_recipient_mismatch": proof.pay_to is None
            or proof.pay_to.lower() == wallet,
            "invalid_exact_evm_payload_authorization_value_mismatch": proof.amount is None
            or proof.amount == str(price),
        }
        for reason, holds in checks.items():
            if not holds:
                raise PaymentRequired(reason)
        check_signed_terms(proof.authorization, quote, now)

    async def check_chain(self, authorization: Authorization) -> bool:
        """Verify the signature, then simulate the exact call. False: the nonce is spent."""
        return await self._checks.check(authorization)
