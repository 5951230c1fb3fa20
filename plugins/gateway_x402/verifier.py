"""Checks a signed authorization: first by pure comparisons, then by one simulated call."""

import asyncio
from collections.abc import Mapping, Sequence

from gateway import (
    Authorization,
    CallReverted,
    Chain,
    Challenge,
    Payment,
    PaymentRequired,
    Quote,
)
from gateway.chain.signatures import is_signed_by
from gateway.chain.signer import Call
from gateway.chain.smart_wallets import (
    deployment_call,
    is_signed_by_key,
    key_call,
    unwrap_authorization,
    unwrap_signature,
    wallet_call,
)
from gateway.domain.eip3009 import (
    AUTHORIZATION_STATE,
    BALANCE_OF,
    Network,
    authorization_digest,
    word,
)
from gateway_x402 import messages
from gateway_x402.refusals import explain_by_token

# The time to settle before the authorization expires.
MIN_REMAINING_S = 20

# A longer authorization would keep an unknown outcome open for as long.
MAX_REMAINING_S = 600
# Challenges that are kept; each takes 6 KB. More than all slugs, prices and versions together.
_MAX_KEPT = 4096
_SIGNATURE = "invalid_exact_evm_payload_signature"
_SPENT = "invalid_exact_evm_nonce_already_used"

# USDC's own words.
_IS_SPENT = "authorization is used or canceled"
_NOT_YET = "invalid_exact_evm_payload_authorization_valid_after"


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
        max_kept: int = _MAX_KEPT,
    ) -> None:
        """`name` is the gateway's, under which a Bazaar lists it."""
        self._network = network
        self._chain = chain
        self._factories = {factory.lower() for factory in factories}
        self._name = name
        self._max_kept = max_kept
        self._kept: dict[tuple[str, int, int], tuple[Quote, Challenge]] = {}

    def challenge(self, quote: Quote, reason: str | None, version: int) -> Challenge:
        """Return the 402 for a quote; one without a reason is kept for the next buyer.

        A kept challenge serves while endpoint, wallet, network and address are the same.
        """
        if reason is not None:
            return messages.challenge(quote, reason, version, name=self._name)
        key = (quote.endpoint.slug, quote.price_units, version)
        kept = self._kept.get(key)
        if kept is None or not _is_same_offer(kept[0], quote):
            if len(self._kept) >= self._max_kept:
                self._kept.clear()
            made = messages.challenge(quote, None, version, name=self._name)
            kept = self._kept[key] = (quote, made)
        return kept[1]

    def read(self, header: str) -> messages.X402Proof:
        """Decode a payment header."""
        return messages.decode(header)

    def receipt_headers(self, proof: messages.X402Proof, payment: Payment) -> Mapping[str, str]:
        """Return the header of the 200 that describes the settlement."""
        name = self._network.name if proof.version == 1 else self._network.caip2
        return messages.receipt(proof, payment, name)

    def check_terms(self, proof: messages.X402Proof, quote: Quote, now: float) -> None:
        """Compare what the payer signed with the quote. Asks the chain nothing."""
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

    async def check_chain(self, authorization: Authorization) -> bool:
        """Find out whose signature it is, then simulate the exact call.

        Returns True if the call succeeds, and False if the nonce is spent. Raises
        `PaymentRequired` if the call fails for another reason, `ExecutionError` if no payment at
        all would succeed, and `ChainUnavailable`.
        """
        is_by_key = is_signed_by_key(authorization, self._network)
        if is_by_key:
            call = key_call(authorization, self._network)
        else:
            call = await self._build_wallet_call(authorization)
        try:
            await self._chain.call(call.data, to=call.to, gas=call.gas)
        except CallReverted as refusal:
            # If the refusal names the nonce, it counts: the state of the nonce would be read from
            # another endpoint, which may lag behind.
            if _IS_SPENT not in str(refusal):
                await self._explain_unless_spent(authorization, str(refusal))
            if not is_by_key:
                await self._check_wallet_signed(authorization)
            return False
        return True

    async def _build_wallet_call(self, authorization: Authorization) -> Call:
        """Return the call for a signature that is not by the sender's own key.

        If the account has no code, it must be a wallet that an allowed factory deploys. Raises
        `PaymentRequired` otherwise.
        """
        if await self._chain.code(authorization.sender):
            return wallet_call(authorization, self._network)
        deployment = unwrap_signature(authorization.signature)
        if deployment is None or deployment.factory not in self._factories:
            raise PaymentRequired(_SIGNATURE)
        return deployment_call(authorization, self._network, deployment)

    async def _explain_unless_spent(self, authorization: Authorization, refusal: str) -> None:
        """Raise why the token refused the call, or return if the nonce is spent."""
        sender = word(authorization.sender)
        spent, balance, head = await asyncio.gather(
            self._chain.call_uint(AUTHORIZATION_STATE + sender + word(authorization.nonce)),
            self._chain.call_uint(BALANCE_OF + sender),
            self._chain.head(),
        )
        if spent:
            return
        await explain_by_token(self._chain, refusal, authorization.sender)
        if balance < authorization.value_units:
            raise PaymentRequired("invalid_exact_evm_insufficient_balance")
        # The contract demands that `validAfter` is in the past.
        if head.timestamp <= authorization.valid_after:
            raise PaymentRequired(_NOT_YET)
        # The token or the account's code refuses the signature.
        raise PaymentRequired(_SIGNATURE)

    async def _check_wallet_signed(self, authorization: Authorization) -> None:
        """Ask the wallet itself, because the token refuses a spent nonce before it asks the wallet.

        The nonce is public. Without this check a stranger could claim the wallet's payment.
        """
        digest = authorization_digest(authorization, self._network)
        signature = unwrap_authorization(authorization).signature
        if not await is_signed_by(self._chain, authorization.sender, digest, signature):
            raise PaymentRequired(_SPENT)


def _is_same_offer(kept: Quote, quote: Quote) -> bool:
    """Whether two quotes of one slug and price lead to the same challenge.

    Whoever changes an endpoint makes another object of it; comparing all fields costs more than
    the challenge.
    """
    return (
        kept.endpoint is quote.endpoint
        and kept.wallet == quote.wallet
        and kept.network is quote.network
        and kept.resource_url == quote.resource_url
    )
