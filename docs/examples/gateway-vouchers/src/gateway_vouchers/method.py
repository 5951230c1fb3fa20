"""Vouchers as a payment method: the header, the 402, the check, and the redemption."""

import re
from collections.abc import Mapping, Sequence

from gateway import (
    Challenge,
    MethodPayment,
    MethodProof,
    PaymentRequired,
    Quote,
    Refused,
    Taken,
)
from gateway_vouchers.ledger import Ledger
from gateway_vouchers.voucher import Seal, decode

# Characters that need no escaping inside quotes.
_REASON = re.compile(r"[a-z0-9_]{1,80}")
_RECEIPT = "Voucher-Receipt"


class VoucherMethod:
    """Accepts `Authorization: Voucher <token>`."""

    name = "voucher"
    header_names: Sequence[str] = ("Authorization: Voucher",)
    answer_headers = ("WWW-Authenticate", _RECEIPT)
    guide = (
        "Whoever has a prepaid voucher of this gateway sends it as `Authorization: Voucher "
        "<token>` instead of an x402 payment. One voucher pays for one request and is then used "
        "up as a whole: what it is worth above the price is not given back. The same request "
        "with the same voucher again returns the same task."
    )

    def __init__(self, realm: str, seal: Seal, ledger: Ledger) -> None:
        self._realm = realm
        self._seal = seal
        self._ledger = ledger

    def challenge(self, quote: Quote, reason: str | None, version: int) -> Challenge:
        """Return the header that offers vouchers, with the least value."""
        whole, millionths = divmod(quote.price_units, 10**6)
        parts = [f'realm="{self._realm}"', f'price="{whole}.{millionths:06d}"', 'currency="USDC"']
        if reason is not None and _REASON.fullmatch(reason):
            parts.append(f'error="{reason}"')
        body = {} if reason is None else {"error": reason}
        return Challenge(body=body, headers={"WWW-Authenticate": f"Voucher {', '.join(parts)}"})

    def read(self, header: str) -> MethodProof:
        """Decode a token; `check` verifies its signature.

        So a buyer who lost the response still finds his task after the secret was changed.
        """
        try:
            voucher = decode(header)
            data = header.encode("ascii")
        except ValueError:
            raise PaymentRequired("voucher_malformed") from None
        return MethodProof(
            key=voucher.serial,
            data=data,
            value_units=voucher.value_units,
            payer=f"voucher {voucher.serial}",
            refund_to=voucher.refund_to,
        )

    async def check(self, proof: MethodProof, quote: Quote, now: float) -> None:
        """Refuse a voucher that is forged, expired, or of another gateway."""
        token = proof.data.decode()
        if not self._seal.is_on(token):
            raise PaymentRequired("voucher_forged")
        voucher = decode(token)
        if voucher.gateway != self._realm:
            raise PaymentRequired("voucher_of_another_gateway")
        if now >= voucher.expires:
            raise PaymentRequired("voucher_expired")

    async def settle(self, payment: MethodPayment) -> Taken | Refused:
        """Redeem the voucher for this task, unless another task has it.

        The signature was checked before the payment was accepted; the secret may have changed
        since.
        """
        voucher = decode(payment.data.decode())
        # Not the current time: a voucher that was valid when accepted stays valid.
        if payment.reserved_at >= voucher.expires:
            return Refused("voucher_expired")
        if await self._ledger.owner_of(payment.claim, payment.task_id) != payment.task_id:
            return Refused("voucher_already_used")
        return Taken(f"voucher {voucher.serial}")

    def receipt_headers(self, proof: MethodProof, reference: str | None) -> Mapping[str, str]:
        """Return the receipt once the voucher is redeemed."""
        return {} if reference is None else {_RECEIPT: reference}
