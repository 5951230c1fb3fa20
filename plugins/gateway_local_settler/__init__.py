"""Settlement by the gateway's own key: it sends `transferWithAuthorization` and pays the gas.

The key holds a little ETH and no USDC. Every transaction is signed and written down (T2)
before it is sent, so a restart sends the same bytes again and never loses a nonce.
"""

from collections.abc import Callable

from gateway import (
    Authorization,
    ExecutionError,
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
from gateway.smart_wallets import KEY_GAS, settlement_call

_MOST_NONCES = 3  # for one payment: one taken elsewhere, one overtaken, one more


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
        self._signer = Signer(secret, context, self._write_down, most_nonces=_MOST_NONCES)
        self.address = self._signer.address

    @property
    def about(self) -> str:
        """Whose gas settles, how much of it there was at the last look, and how far it goes."""
        money = self._signer.seen_money
        if money is None:
            return self.address
        count = money.lasts_for(KEY_GAS)
        return (
            f"{self.address} holds {money.balance_wei / 10**18:.6f} ETH for gas, "
            f"enough for about {count:,} settlement{'' if count == 1 else 's'}"
        )

    async def check_ready(self) -> None:
        """Raise `ExecutionError` where the key is nearly out of gas money, or gas over the cap."""
        await self._check_funds(KEY_GAS)

    async def check(self, authorization: Authorization, quote: Quote) -> None:
        """Accept what the verifier accepted, if the key can pay for a smart wallet's gas."""
        call = await settlement_call(authorization, quote.network, self._context.chain)
        await self._check_funds(call.gas)

    async def submit(self, payment: Payment) -> str | None:
        """Send what is written down for the payment, or sign and write down (T2) first."""
        return await self._signer.submit(payment, await self._call(payment))

    async def tend(self) -> None:
        """Send again what is not mined yet, dearer where it is stuck."""
        await self._signer.tend(self._call)

    async def close(self) -> None:
        """Stop nothing: each call of ours ends with its caller."""

    async def _write_down(self, payment: Payment, transaction: SignedTransaction) -> None:
        """T2."""
        now = self._context.now()
        await self._context.journal.begin_settling(payment.id, transaction, now=now)

    async def _call(self, payment: Payment) -> Call:
        if payment.authorization is None:
            raise ValueError("a direct payment is not settled by us")
        context = self._context
        return await settlement_call(payment.authorization, context.settings.chain, context.chain)

    async def _check_funds(self, gas: int) -> None:
        if not await self._signer.can_pay(gas):
            raise ExecutionError(
                "The gateway cannot settle x402 payments now; nothing was charged. "
                "A direct USDC transfer works.",
                details=self._why_not(gas),
            )

    def _why_not(self, gas: int) -> str | None:
        """Return the operator's sentence about a key that cannot pay."""
        money, most_gwei = self._signer.seen_money, self._context.settings.max_fee_gwei
        if money is None:
            return None
        if money.fee_wei > most_gwei * 10**9:
            return (
                f"Gas costs {money.fee_wei / 10**9:.3f} gwei now, more than GATEWAY_MAX_FEE_GWEI "
                f"({most_gwei:g}); x402 waits until it is cheaper."
            )
        network = self._context.settings.chain.name
        return (
            f"The settlement wallet {self.about}. x402 needs {money.needed_wei(gas) / 10**18:.6f} "
            f"ETH; send it some ETH on {network}."
        )
