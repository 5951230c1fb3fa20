"""Checks a signed authorization of any protocol.

First its terms against the quote, without RPC calls, then one simulated call on the chain.
"""

import asyncio
from collections.abc import Sequence

from gateway.chain.smart_wallets import (
    deployment_call,
    is_signed_by,
    is_signed_by_key,
    key_call,
    unwrap_authorization,
    unwrap_signature,
    wallet_call,
)
from gateway.chain.transactions import Call
from gateway.contracts.chain import CallReverted, Chain
from gateway.contracts.payments import Quote
from gateway.domain import Authorization
from gateway.domain.eip3009 import (
    AUTHORIZATION_STATE,
    BALANCE_OF,
    IS_BLACKLISTED,
    Network,
    authorization_digest,
    word,
)
from gateway.errors import ExecutionError, PaymentRequired

# Time needed to settle before the authorization expires.
MIN_REMAINING_S = 20

# One hour, which the official Go clients signed until 2026-08-31, and five minutes for a fast
# clock. A longer authorization would keep an unknown outcome open for longer.
MAX_REMAINING_S = 3_900
_WINDOW = (
    f"validBefore must be {MIN_REMAINING_S} to {MAX_REMAINING_S} seconds ahead of the gateway's "
    "clock, and 300 are enough."
)
SPENT = "invalid_exact_evm_nonce_already_used"
_SIGNATURE = "invalid_exact_evm_payload_signature"

_TOO_SHORT_OR_LONG = "invalid_exact_evm_payload_authorization_valid_before"
_NOT_YET = "invalid_exact_evm_payload_authorization_valid_after"
_BALANCE = "invalid_exact_evm_insufficient_balance"

# USDC's revert messages, in lower case.
_PAUSED = "pausable: paused"
_BLACKLISTED = "blacklistable: account is blacklisted"
_IS_SPENT = "authorization is used or canceled"
_REASONS = {
    "authorization is not yet valid": _NOT_YET,
    "authorization is expired": _TOO_SHORT_OR_LONG,
    "transfer amount exceeds balance": _BALANCE,
}


def check_signed_terms(signed: Authorization, quote: Quote, now: float) -> None:
    """Compare recipient, amount and time window with the quote, without RPC calls.

    Raises `PaymentRequired` with x402's standard reason.
    """
    checks = {
        "invalid_exact_evm_payload_recipient_mismatch": signed.recipient == quote.wallet.lower(),
        "invalid_exact_evm_payload_authorization_value_mismatch": signed.value_units
        == quote.price_units,
        _NOT_YET: signed.valid_after <= now,
        _TOO_SHORT_OR_LONG: now + MIN_REMAINING_S <= signed.valid_before <= now + MAX_REMAINING_S,
    }
    for reason, holds in checks.items():
        if not holds:
            raise PaymentRequired(reason, details=_WINDOW if reason == _TOO_SHORT_OR_LONG else None)


class AuthorizationChecks:
    """Checks signed authorizations on the chain of one network, read-only."""

    def __init__(self, network: Network, chain: Chain, factories: Sequence[str] = ()) -> None:
        """`factories` may deploy a wallet before its payment."""
        self._network = network
        self._chain = chain
        self._factories = {factory.lower() for factory in factories}

    async def check(self, authorization: Authorization) -> bool:
        """Identify the kind of signature, then simulate the exact call.

        Returns True if the call succeeds, and False if the nonce is spent. Raises
        `PaymentRequired` if the call fails for another reason, `ExecutionError` if no payment at
        all would succeed, and `ChainUnavailable`.
        """
        is_by_key = is_signed_by_key(authorization, self._network)
        if is_by_key:
            if await self._chain.simulate_plain(authorization):
                return True
            call = key_call(authorization, self._network)
        else:
            call = await self._build_wallet_call(authorization)
        try:
            await self._chain.call(call.data, to=call.to, gas=call.gas)
        except CallReverted as refusal:
            # A refusal that names the nonce is final: reading the nonce's state might reach an
            # endpoint that lags behind.
            if _IS_SPENT not in str(refusal):
                await self._explain_unless_spent(authorization, str(refusal))
            if not is_by_key:
                await self._check_wallet_signed(authorization)
            return False
        return True

    async def _build_wallet_call(self, authorization: Authorization) -> Call:
        """Return the call for a signature that is not by the sender's own key.

        Raises `PaymentRequired` if the account has no code and no allowed factory deploys it.
        """
        if await self._chain.code(authorization.sender):
            return wallet_call(authorization, self._network)
        deployment = unwrap_signature(authorization.signature)
        if deployment is None or deployment.call[0] not in self._factories:
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
        await _explain_by_token(self._chain, refusal, authorization.sender)
        # The token's message wins, because the state may have been read at a newer block.
        for message, reason in _REASONS.items():
            if message in refusal:
                raise PaymentRequired(reason)
        if balance < authorization.value_units:
            raise PaymentRequired(_BALANCE)
        # The contract requires `validAfter` to be in the past.
        if head.timestamp <= authorization.valid_after:
            raise PaymentRequired(_NOT_YET)
        # The token or the account's code refuses the signature.
        raise PaymentRequired(_SIGNATURE)

    async def _check_wallet_signed(self, authorization: Authorization) -> None:
        """Ask the wallet itself: the token refuses a spent nonce before it checks the signature.

        The nonce is public, so without this check anyone could claim the wallet's payment.
        """
        digest = authorization_digest(authorization, self._network)
        signature = unwrap_authorization(authorization).signature
        if not await is_signed_by(self._chain, authorization.sender, digest, signature):
            raise PaymentRequired(SPENT)


async def _explain_by_token(chain: Chain, refusal: str, sender: str) -> None:
    """Raise if the token is paused or blacklists payer or recipient; otherwise return.

    Raises `PaymentRequired` if the payer is blacklisted, `ExecutionError` if the token is paused or
    blacklists our wallet, and `ChainUnavailable`.
    """
    message = refusal.lower()
    if _PAUSED in message:
        raise ExecutionError("USDC is paused by its issuer: nothing can be paid now.")
    if _BLACKLISTED not in message:
        return
    if await chain.call_uint(IS_BLACKLISTED + word(sender)):
        raise PaymentRequired(
            "The USDC contract blacklists the payer's account. Pay from another account."
        )
    raise ExecutionError("The gateway's wallet cannot receive USDC now.")
