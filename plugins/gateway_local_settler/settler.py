"""Settles each authorization in a transaction of its own, or in a batch, by a settlement key.

A key holds a little ETH and no USDC. Every transaction is signed and stored (`begin_settling`)
before it is sent, so a restart sends the same bytes again and loses no nonce.
"""

import asyncio
from collections.abc import Collection
from functools import partial

import attrs

from gateway import (
    Authorization,
    CallReverted,
    Condition,
    ExecutionError,
    NoFreeNonce,
    Payment,
    PaymentRequired,
    PluginContext,
    Quote,
    SettingsError,
    SignedTransaction,
    UnsignedTransaction,
)
from gateway.chain.keys import address_of, load_settlement_keys
from gateway.chain.signer import Signer
from gateway.chain.smart_wallets import (
    KEY_GAS,
    has_code,
    is_signed_by_key,
    key_call,
    settlement_call,
    unwrap_signature,
)
from gateway.chain.transactions import Call, Known
from gateway.contracts import GasOfKey
from gateway_local_settler.batches import Batches
from gateway_local_settler.keys import SettlementKeys
from gateway_local_settler.recent_checks import (
    FRESH_S,
    KEPT_S,
    Reading,
    RecentChecks,
    Submit,
    begin_age,
)
from gateway_local_settler.waits import KeyWaits

# The most nonces of a settlement key for one payment: one that another process takes, one that is
# overtaken, and one more. An account with code can make each of them revert at will, so its payment
# gets one. A wallet that is not deployed yet gets two: if a third party deploys it, the first one
# reverts.
_MAX_NONCES = 3
_MAX_NONCES_OF_CODE = 1
_MAX_NONCES_UNDEPLOYED = 2
_HOUR_S = 3600.0
_REFUSED = "invalid_exact_evm_payload_signature"
_NOT_NOW = "A direct USDC transfer works."


class LocalSettler:
    """Sends each authorization, alone or in a batch. Implements `gateway.Settler`."""

    def __init__(self, context: PluginContext) -> None:
        secrets = load_settlement_keys(context.settings)
        if not secrets:
            raise SettingsError(
                "GATEWAY_SETTLEMENT_KEY is not set. It is the private key that pays the gas of "
                "x402 settlements; GATEWAY_SETTLEMENT_KEYS takes several. "
                "Example: GATEWAY_SETTLEMENT_KEY=0x<64 hexadecimal digits>"
            )
        self._context = context
        self._waits = KeyWaits(context.now, has_locks=bool(context.settings.database_url))
        # Of checks that have begun, and of those that passed.
        self._begun, self._passed = RecentChecks(), RecentChecks()
        addresses = [address_of(secret) for secret in secrets]
        self._keys = SettlementKeys(
            [
                Signer(
                    secret,
                    context,
                    self._write_down,
                    most_nonces=self._most_nonces,
                    measured=self._waits.measured,
                    siblings=[each for each in addresses if each != address_of(secret)],
                )
                for secret in secrets
            ],
            context.now,
        )
        self._batches: Batches | None = None
        if context.settings.settlement_batch > 1:
            self._batches = Batches(self._keys, context, self._is_gas_burned)
        self.addresses = self._keys.addresses

    @property
    def about(self) -> str:
        """Each key's address, its ETH at the last check, and how many settlements that pays for."""
        return self._keys.about

    @property
    def gas(self) -> tuple[GasOfKey, ...]:
        """Each key's balance at the last check, and how many settlements it pays for."""
        return self._keys.gas

    @property
    def busy_keys(self) -> Collection[str]:
        """The keys for which payments have had to wait for minutes."""
        return self._waits.find_busy()

    def share_keys(
        self, own: Collection[str], common: Collection[str], busy: Collection[str]
    ) -> None:
        """Sign with `own` keys; `busy` are the busy keys of all machines.

        Without own keys, or while those are busy, any of the `common` keys signs, which all
        machines have. Without common keys, any key.
        """
        self._keys.share(own, common)
        self._waits.busy_anywhere = busy

    async def find_conditions(self) -> list[Condition]:
        """Return the condition for the operator, if payments wait for keys."""
        return self._waits.find_conditions()

    async def check_ready(self) -> None:
        """Raise `ExecutionError` if every key is nearly out of ETH, or if gas is over the cap."""
        await self._keys.read_money(KEY_GAS)
        await self._check_funds(KEY_GAS)

    async def prepare(self, authorization: Authorization) -> None:
        """Read ahead for a plain account's check and settlement, beside its simulation."""
        if not is_signed_by_key(authorization, self._context.settings.chain):
            return
        is_younger = begin_age(self._context.now)
        counts, is_code = await asyncio.gather(
            self._keys.read_ahead(KEY_GAS), self._read_code(authorization)
        )
        self._begun.keep(authorization, Reading(is_code, counts, is_younger))

    async def _read_code(self, authorization: Authorization) -> bool:
        """Return whether the account has code, by the check's own `eth_call` if it shows that."""
        chain = self._context.chain
        return not await chain.simulate_plain(authorization) and await has_code(
            authorization, chain
        )

    async def check(self, authorization: Authorization, quote: Quote) -> None:
        """Check that a key can pay for this settlement at the gas price of a block.

        The call has just been simulated. The settlement of an account whose code was read beside
        that, and is empty, relies on that simulation for a second.

        For an account with code the settlement is simulated as its transaction would run: from our
        key, at real fees. Raises `PaymentRequired` if that reverts, and `ExecutionError`.
        """
        reading = self._begun.take(authorization)
        if reading is not None and not reading.is_younger(FRESH_S):
            reading = None
        if reading is not None:
            call, is_code = key_call(authorization, quote.network), reading.is_code
        else:
            chain = self._context.chain
            call, is_code = await asyncio.gather(
                settlement_call(authorization, quote.network, chain), has_code(authorization, chain)
            )
        await self._check_funds(call.gas)
        if is_code:
            await self._check_failed_gas()
            try:
                await self._keys.simulate(call)
            except CallReverted:
                raise PaymentRequired(_REFUSED) from None
            # The settlement simulates it again, by whichever key.
            reading = None
        # Signatures of smart wallets can be long.
        if is_signed_by_key(authorization, quote.network):
            is_younger = begin_age(self._context.now)
            reading = reading or Reading(is_code, {}, is_younger, is_simulated=False)
            # If it is not, `begin_settling` finds the earlier transaction.
            is_first = partial(reading.is_younger, KEPT_S)
            self._passed.keep(authorization, attrs.evolve(reading, is_first=is_first))

    async def _check_failed_gas(self) -> None:
        """Raise `ExecutionError` if failed settlements of smart accounts burned the hour's gas."""
        if await self._is_gas_burned():
            raise ExecutionError(
                "Too many settlements of smart accounts failed in this hour, so none is tried "
                f"now. {_NOT_NOW}"
            )

    async def _is_gas_burned(self) -> bool:
        since = self._context.now() - _HOUR_S
        burned = await self._context.journal.failed_gas(since=since)
        return burned >= self._context.settings.failed_gas_per_hour * 10**18

    async def _most_nonces(self, payment: Payment) -> int:
        """Return how many nonces a payment may use. Called once its first nonce is used."""
        if payment.authorization is None:
            raise ValueError("a direct payment is not settled by us")
        if unwrap_signature(payment.authorization.signature) is not None:
            return _MAX_NONCES_UNDEPLOYED
        is_code = await has_code(payment.authorization, self._context.chain)
        return _MAX_NONCES_OF_CODE if is_code else _MAX_NONCES

    async def submit(self, payment: Payment) -> str | None:
        """Send the payment's stored transaction, or sign and store one first.

        Returns the transaction's hash. Returns None if nothing was sent: the chain would refuse the
        call, or the payment has used all its nonces.
        """
        call, authorization = await self._build_call(payment)
        now = self._context.now
        # Without a reading the payment's transactions are read first, and it is simulated.
        unread = Reading(is_code=False, counts={}, is_younger=begin_age(now), is_simulated=False)
        reading = self._passed.take(authorization) or unread
        begun = Submit(reading, now)
        send = self._keys if self._batches is None else self._batches
        try:
            if reading.has_waited:
                await self._keys.check_nonce_free(call.gas)
            return await send.submit(payment, call, self._find_known(authorization, begun))
        except NoFreeNonce as error:
            if not reading.has_waited:
                self._waits.note_refused(error.signer)
            self._passed.keep(authorization, begun.find_left())
            raise

    def _find_known(self, authorization: Authorization, begun: Submit) -> Known:
        """Return the facts of the last reading, as far as they are recent."""
        reading, chain = begun.reading, self._context.chain
        is_plain = not reading.is_code and is_signed_by_key(
            authorization, self._context.settings.chain
        )
        return Known(
            is_first=reading.is_first(),
            is_fresh=reading.is_fresh,
            count_of=reading.count_of,
            simulate_plain=partial(begun.passes_now, authorization, chain) if is_plain else None,
        )

    async def tend(self) -> None:
        """Resend unmined transactions, with a higher fee if they are stuck."""
        await self._keys.tend()

    async def close(self) -> None:
        """Stop the background work: the batches and the count of pending transactions."""
        if self._batches is not None:
            await self._batches.close()
        await self._keys.close()

    async def _write_down(
        self, payment: Payment, unsigned: UnsignedTransaction
    ) -> SignedTransaction | None:
        now = self._context.now()
        return await self._context.journal.begin_settling(payment.id, unsigned, now=now)

    async def _build_call(self, payment: Payment) -> tuple[Call, Authorization]:
        if payment.authorization is None:
            raise ValueError("a direct payment is not settled by us")
        network, chain = self._context.settings.chain, self._context.chain
        call = await settlement_call(payment.authorization, network, chain)
        return call, payment.authorization

    async def _check_funds(self, gas: int) -> None:
        if not await self._keys.can_pay(gas):
            raise ExecutionError(
                f"The gateway cannot settle x402 payments now. {_NOT_NOW}",
                details=self._funds_problem(gas),
            )

    def _funds_problem(self, gas: int) -> str | None:
        """Return why the keys cannot pay, for the operator; None before any check."""
        money, most_gwei = self._keys.seen_money, self._context.settings.max_fee_gwei
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
