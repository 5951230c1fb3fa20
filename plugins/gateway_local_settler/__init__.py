"""Settlement by the gateway's own key: it sends `transferWithAuthorization` and pays the gas.

The key holds a little ETH and no USDC. Every transaction is signed and written down (T2)
before it is sent, so a restart sends the same bytes again and never loses a nonce.
"""

from collections.abc import Callable

from gateway import (
    Authorization,
    Payment,
    PluginContext,
    Quote,
    SettingsError,
    Settler,
    SignedTransaction,
    hookimpl,
)
from gateway.keys import load_key
from gateway.signer import Call, Signer
from gateway.usdc import TRANSFER_GAS, settlement_call


@hookimpl
def register_settlers(
    register: Callable[[str, Callable[[], Settler]], None], context: PluginContext
) -> None:
    """Offer settlement by our own key."""
    register("local", lambda: LocalSettler(context))


class LocalSettler:
    """Sends each authorization in a transaction of its own. Implements `gateway.Settler`."""

    def __init__(self, context: PluginContext) -> None:
        secret = load_key(context.settings, "settlement")
        if secret is None:
            raise SettingsError(
                "GATEWAY_SETTLEMENT_KEY is not set. It is the private key that pays the gas of "
                "x402 settlements. Example: GATEWAY_SETTLEMENT_KEY=0x<64 hexadecimal digits>"
            )
        self._context = context
        self._signer = Signer(secret, context, self._write_down)
        self.address = self._signer.address

    async def check_ready(self) -> None:
        """Raise `ExecutionError` where the key is nearly out of gas money, or gas over the cap."""
        await self._signer.check_funds(TRANSFER_GAS)

    async def check(self, authorization: Authorization, quote: Quote) -> None:
        """Accept what the verifier accepted: it simulated the call that we send."""

    async def submit(self, payment: Payment) -> str | None:
        """Send what is written down for the payment, or sign and write down (T2) first."""
        return await self._signer.submit(payment, self._call(payment))

    async def tend(self) -> None:
        """Send again what is not mined yet, dearer where it is stuck."""
        await self._signer.tend(self._call)

    async def _write_down(self, payment: Payment, transaction: SignedTransaction) -> None:
        """T2."""
        now = self._context.now()
        await self._context.journal.begin_settling(payment.id, transaction, now=now)

    def _call(self, payment: Payment) -> Call:
        if payment.authorization is None:
            raise ValueError("a direct payment is not settled by us")
        to, data, gas = settlement_call(payment.authorization, self._context.settings.chain)
        return Call(to=to, data=data, gas=gas)
