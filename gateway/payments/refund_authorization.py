"""The EIP-3009 authorization that a refund is: one payment's transfer, one nonce, for ever."""

import attrs
from coincurve import PrivateKey
from eth_hash.auto import keccak

from gateway.domain import Authorization, Payment, RefundCase
from gateway.domain.eip3009 import Network, authorization_digest, word

_FOR_EVER = 2**256 - 1  # a refund does not expire: its nonce is its only end


def refund_nonce(payment: Payment, network: Network) -> str:
    """Return the nonce of a payment's refund: the same from whichever database it is computed.

    Hash over chain, token, and what paid: payer and nonce of an authorization, or a transaction.
    Never a log's index, which changes where its block is replaced.
    """
    if payment.paid_tx is None:
        raise ValueError("nothing was paid")
    paid = word(payment.paid_tx)
    if payment.authorization is not None:
        paid = word(payment.payer) + word(payment.authorization.nonce)
    return "0x" + keccak(b"refund" + network.domain_separator + paid).hex()


def sign_refund(secret: bytes, sender: str, case: RefundCase, network: Network) -> Authorization:
    """Return the refund key's authorization of one refund; the same each time it is signed."""
    unsigned = Authorization(
        sender=sender,
        recipient=case.recipient,
        value_units=case.amount_units,
        valid_after=0,
        valid_before=_FOR_EVER,
        nonce=refund_nonce(case.payment, network),
        signature=b"",
    )
    digest = authorization_digest(unsigned, network)
    signature = PrivateKey(secret).sign_recoverable(digest, hasher=None)
    return attrs.evolve(unsigned, signature=signature[:64] + bytes([27 + signature[64]]))
