"""Settlement by the gateway's own key: it sends `transferWithAuthorization` and pays the gas.

The key holds a little ETH and no USDC. Every transaction is signed and written down (T2)
before it is sent, so a restart sends the same bytes again and never loses a nonce.
"""

import asyncio
import importlib
from collections.abc import Callable

import attrs
from coincurve import PrivateKey
from eth_hash.auto import keccak

from gateway import (
    CallReverted,
    ExecutionError,
    Payment,
    PluginContext,
    SettingsError,
    Settler,
    SignedTransaction,
    hookimpl,
)
from gateway.usdc import transfer_calldata

_GAS_LIMIT = 150_000  # USDC's transferWithAuthorization uses 60,000 to 90,000
_RESERVE_SETTLEMENTS = 5  # sell only while the key can pay for this many more
_STUCK_S = 15  # seconds unmined after which a dearer replacement is sent
_BALANCE_TTL_S = 15  # seconds a gas balance is believed


@hookimpl
def register_settlers(
    register: Callable[[str, Callable[[], Settler]], None], context: PluginContext
) -> None:
    """Offer settlement by our own key."""
    register("local", lambda: LocalSettler(context))


class LocalSettler:
    """One sender at a time, one nonce after the other. Implements `gateway.Settler`."""

    def __init__(self, context: PluginContext) -> None:
        secret = context.settings.settlement_key
        if not secret:
            raise SettingsError(
                "GATEWAY_SETTLEMENT_KEY is not set. It is the private key that pays the gas of "
                "x402 settlements. Example: GATEWAY_SETTLEMENT_KEY=0x<64 hexadecimal digits>"
            )
        self._secret = bytes.fromhex(secret.removeprefix("0x"))
        public = PrivateKey(self._secret).public_key.format(compressed=False)
        self.address = "0x" + keccak(public[1:])[12:].hex()
        self._settings = context.settings
        self._chain = context.chain
        self._journal = context.journal
        self._now = context.now
        self._sending = asyncio.Lock()
        self._affordable_until = 0.0

    async def check_ready(self) -> None:
        """Raise `ExecutionError` where the key is nearly out of gas money, or gas over the cap."""
        if self._now() < self._affordable_until:
            return
        balance, (base_fee, priority) = await asyncio.gather(
            self._chain.gas_balance(self.address), self._chain.fees()
        )
        needed = self._max_fee(base_fee, priority) * _GAS_LIMIT * _RESERVE_SETTLEMENTS
        if balance < needed or base_fee + priority > self._cap_wei:
            raise ExecutionError(
                "The gateway cannot settle x402 payments now; nothing was charged. "
                "A direct USDC transfer works."
            )
        self._affordable_until = self._now() + _BALANCE_TTL_S

    async def submit(self, payment: Payment) -> str | None:
        """Send what is written down for the payment, or sign and write down (T2) first."""
        async with self._sending:
            transaction = await self._journal.unmined_of(payment.id) or await self._begin(payment)
            if transaction is None:
                return None
            await self._chain.send(transaction.raw)
            return transaction.tx_hash

    async def tend(self) -> None:
        """Send again what is not mined yet; what is stuck is replaced by a dearer one."""
        async with self._sending:
            await self._journal.mark_mined(
                self.address, await self._chain.transaction_count(self.address)
            )
            for payment, transaction in await self._journal.unmined(self.address):
                is_stuck = self._now() - transaction.sent_at > _STUCK_S
                newest = await self._replace(payment, transaction) if is_stuck else transaction
                await self._chain.send(newest.raw)

    async def _begin(self, payment: Payment) -> SignedTransaction | None:
        """T2: sign with the next nonce and write down; None where the token would refuse it."""
        try:
            await self._chain.call(_calldata(payment), sender=self.address)
        except CallReverted:
            return None  # spent or expired meanwhile: reconciliation finds out which
        base_fee, priority = await self._chain.fees()
        chain_nonce = await self._chain.transaction_count(self.address)
        nonce = await self._journal.next_nonce(self.address, chain_nonce)
        fee = self._max_fee(base_fee, priority)
        transaction = await self._sign(_calldata(payment), nonce, fee, min(priority, fee))
        await self._journal.begin_settling(payment.id, transaction, now=self._now())
        return transaction

    async def _replace(self, payment: Payment, stuck: SignedTransaction) -> SignedTransaction:
        """Write down the same call with the same nonce and a higher fee, up to the cap."""
        base_fee, _ = await self._chain.fees()
        priority = stuck.max_priority_wei * 9 // 8 + 1  # nodes want at least 12.5 % more
        least = stuck.max_fee_wei * 9 // 8 + 1
        fee = min(max(least, 2 * base_fee + priority), self._cap_wei)
        if fee < least or priority > fee:
            return stuck
        dearer = await self._sign(_calldata(payment), stuck.nonce, fee, priority)
        await self._journal.add_replacement(payment.id, dearer)
        return dearer

    @property
    def _cap_wei(self) -> int:
        return int(self._settings.max_fee_gwei * 10**9)

    def _max_fee(self, base_fee: int, priority: int) -> int:
        """Bid twice the base fee, so that it may rise for six full blocks, up to the cap."""
        return min(2 * base_fee + priority, self._cap_wei)

    async def _sign(self, data: bytes, nonce: int, fee: int, priority: int) -> SignedTransaction:
        transaction = {
            "chainId": self._settings.chain.chain_id,
            "to": bytes.fromhex(self._settings.chain.token[2:]),
            "value": 0,
            "data": data,
            "gas": _GAS_LIMIT,
            "nonce": nonce,
            "maxFeePerGas": fee,
            "maxPriorityFeePerGas": priority,
        }
        signed = await asyncio.to_thread(_sign, self._secret, transaction)
        return attrs.evolve(signed, signer=self.address, sent_at=self._now())


def _sign(secret: bytes, transaction: dict[str, object]) -> SignedTransaction:
    """Sign in a thread: eth_account costs half a second to import and milliseconds to sign."""
    account = importlib.import_module("eth_account").Account
    signed = account.sign_transaction(transaction, secret)
    return SignedTransaction(
        signer="",
        nonce=int(str(transaction["nonce"])),
        tx_hash="0x" + bytes(signed.hash).hex(),
        raw=bytes(signed.raw_transaction),
        max_fee_wei=int(str(transaction["maxFeePerGas"])),
        max_priority_wei=int(str(transaction["maxPriorityFeePerGas"])),
        sent_at=0.0,
    )


def _calldata(payment: Payment) -> bytes:
    if payment.authorization is None:
        raise ValueError("a direct payment is not settled by us")
    return transfer_calldata(payment.authorization)
