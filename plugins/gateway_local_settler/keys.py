"""The settlement keys: which one sends the next settlement, and whether they can pay for it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import structlog

from gateway import ChainUnavailable, Payment
from gateway.chain.signer import MAX_WAITING, GasMoney, Signer
from gateway.chain.smart_wallets import KEY_GAS
from gateway.chain.transactions import UNKNOWN, Call, CountOf, Known
from gateway.concurrency.shared_answers import SharedAnswer
from gateway.contracts import GasOfKey

# Many nodes keep no more of a sender.
_USUAL_WAITING = 16
# A count costs a read and a call per key, and every purchase needs one.
_WAITING_TTL_S = 0.25
# All balances are for the operator. The check of obstacles asks every minute, so it asks first.
_MONEY_READ_S = 55.0
# A key whose count is known saves a call, so it sends although this many more wait.
_SAVED = 4
_log = structlog.get_logger()


def _credit(waiting: int, count: int | None) -> int:
    """Return how many fewer transactions of a key to assume, because its count is known."""
    return _SAVED if count is not None and waiting < _USUAL_WAITING else 0


class _Group:
    """Some keys, and their pending transactions by address, cached for a moment."""

    def __init__(self, signers: Sequence[Signer], now: Callable[[], float]) -> None:
        self.signers = signers
        self.waiting: SharedAnswer[dict[str, int]] = SharedAnswer(now, ttl_s=_WAITING_TTL_S)


class SettlementKeys:
    """One or more keys. The key with the fewest pending transactions sends the next one.

    Of several machines, each uses keys of its own. With 16 transactions pending for each of them,
    it also uses others' keys that have at most half as many.
    """

    def __init__(self, signers: Sequence[Signer], now: Callable[[], float]) -> None:
        self._signers = signers
        self.addresses = tuple(signer.address for signer in signers)
        # This machine's, and the rest.
        self._own = _Group(signers, now)
        self._others = _Group((), now)
        # Submits in progress by key address, which the journal does not contain yet.
        self._submitting: Counter[str] = Counter()
        # Submits that the last count may have missed: those in progress during it, and later ones.
        self._uncounted: Counter[str] = Counter()
        # Addresses of the keys that could not pay at the last check.
        self._poor: set[str] = set()
        self._money_read: SharedAnswer[None] = SharedAnswer(now, ttl_s=_MONEY_READ_S)

    async def simulate(self, call: Call) -> None:
        """Simulate the call as its transaction; raises `CallReverted`, `ChainUnavailable`."""
        signer = await self._choose(call.gas)
        await signer.simulate(call, await signer.bid())

    async def read_ahead(self, gas: int) -> dict[str, int]:
        """Read ahead for the next settlement; returns the mined transactions of its key."""
        signer = await self._choose(gas)
        count, *_ = await asyncio.gather(signer.count_mined(), signer.bid(), signer.can_pay(gas))
        return {signer.address: count}

    async def submit(self, payment: Payment, call: Call, known: Known = UNKNOWN) -> str | None:
        """Send the payment's transaction; see `Signer.submit`.

        `known.count_of` has results of `read_ahead`. Raises `ChainUnavailable` if no key can pay
        for a new one, and `NoFreeNonce`.
        """
        if not known.is_first and (sent := await self.resend(payment)):
            return sent
        return await self.send_new(payment, call, known)

    async def resend(self, payment: Payment) -> str | None:
        """Resend the payment's unmined transaction, whichever key signed it; None without one."""
        # It is signed already, so the balance of its key does not matter.
        return await self._signers[0].resend(payment)

    async def send_new(self, payment: Payment, call: Call, known: Known = UNKNOWN) -> str | None:
        """Sign and send. No transaction of the payment is pending. Raises as `submit` does."""
        signer = await self._choose(call.gas, known.count_of)
        with self._counted(signer.address):
            return await signer.send_new(payment, call, known)

    async def check_nonce_free(self, gas: int) -> None:
        """Raise `NoFreeNonce` if the key that would send the next call has no free nonce."""
        await (await self._choose(gas)).check_nonce_free()

    async def send_batch(
        self, batch: Sequence[tuple[Payment, Call]], gas_of: Callable[[int], int]
    ) -> tuple[str, Collection[int]] | None:
        """Send several payments in one transaction, as many as a key can pay for.

        See `Signer.send_batch`. `gas_of` returns the gas limit for a number of payments.
        """
        signer = await self._choose(gas_of(1))
        count = len(batch)
        while count > 1 and not await signer.can_pay(gas_of(count)):
            count //= 2
        if count == 1:
            return None
        with self._counted(signer.address):
            return await signer.send_batch(batch[:count], gas_of(count))

    @contextlib.contextmanager
    def _counted(self, address: str) -> Iterator[None]:
        """Count a submit during the block, and until a later count includes its transaction."""
        self._submitting[address] += 1
        self._uncounted[address] += 1
        try:
            yield
        finally:
            self._submitting[address] -= 1

    def share(self, own: Collection[str], common: Collection[str]) -> None:
        """Sign new transactions with `own` keys; without any with `common` ones, else with all."""
        shared = set(common).intersection(self.addresses) or set(self.addresses)
        mine = shared.intersection(own) or shared
        self._own.signers = [one for one in self._signers if one.address in mine]
        self._others.signers = [one for one in self._signers if one.address in shared - mine]

    async def _choose(self, gas: int, count_of: CountOf = UNKNOWN.count_of) -> Signer:
        """Return the key that sends the next call."""
        if len(self._signers) == 1:
            return self._signers[0]
        waiting = await self._count_able(self._own, gas)
        least = min(waiting.values(), default=MAX_WAITING)
        if self._others.signers and least >= _USUAL_WAITING:
            others = await self._count_able(self._others, gas)
            # Another machine counts on its keys, so they must be clearly less busy.
            is_full = least >= MAX_WAITING
            waiting |= {key: one for key, one in others.items() if is_full or 2 * one <= least}
        if not waiting:
            raise ChainUnavailable("No settlement key can pay for gas now.")
        chosen = min(waiting, key=lambda one: waiting[one] - _credit(waiting[one], count_of(one)))
        return next(signer for signer in self._signers if signer.address == chosen)

    async def _count_able(self, group: "_Group", gas: int) -> dict[str, int]:
        """Return the pending transactions of each key in the group that can pay, by address."""
        can_pay = await self._check_money(group, gas)
        able = [one.address for one, is_able in zip(group.signers, can_pay, strict=True) if is_able]
        if not able:
            return {}
        counts = await group.waiting.get(lambda: self._count_waiting(group.signers))
        # A key that has just come to the group is not counted yet.
        return {address: counts.get(address, 0) + self._uncounted[address] for address in able}

    async def _count_waiting(self, signers: Sequence[Signer]) -> dict[str, int]:
        for signer in signers:
            self._uncounted[signer.address] = self._submitting[signer.address]
        counts = await asyncio.gather(*(signer.count_waiting() for signer in signers))
        return {signer.address: count for signer, count in zip(signers, counts, strict=True)}

    async def can_pay(self, gas: int) -> bool:
        """Return whether gas is below the cap and any key can pay for several such calls.

        Reads the balances of other machines' keys only if no own one can pay.
        """
        for group in (self._own, self._others):
            if any(await self._check_money(group, gas)):
                return True
        return False

    async def _check_money(self, group: "_Group", gas: int) -> list[bool]:
        """Return which of the group's keys can pay. One key needs no tasks."""
        if len(group.signers) == 1:
            return [await self._can_pay(group.signers[0], gas)]
        return await asyncio.gather(*(self._can_pay(one, gas) for one in group.signers))

    async def read_money(self, gas: int) -> None:
        """Read every balance, about once a minute: purchases need this machine's only."""

        async def read() -> None:
            await asyncio.gather(*(self._can_pay(signer, gas) for signer in self._signers))

        await self._money_read.get(read)

    async def _can_pay(self, signer: Signer, gas: int) -> bool:
        """Return whether this key can pay. A change is logged once."""
        is_able = await signer.can_pay(gas)
        if len(self._signers) > 1 and is_able == (signer.address in self._poor):
            self._poor.symmetric_difference_update({signer.address})
            event = "settlement.key_can_pay" if is_able else "settlement.key_cannot_pay"
            _log.warning(event, about=_describe(signer))
        return is_able

    async def tend(self) -> None:
        """Resend every key's unmined transactions, with a higher fee if they are stuck.

        An error of one key does not stop the others.
        """
        outcomes = await asyncio.gather(
            *(signer.tend() for signer in self._signers), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def close(self) -> None:
        """Stop the counts in progress."""
        await self._money_read.close()
        await self._own.waiting.close()
        await self._others.waiting.close()

    @property
    def seen_money(self) -> GasMoney | None:
        """The largest balance of a key at the last check; None before any check."""
        seen = [signer.seen_money for signer in self._signers if signer.seen_money is not None]
        return max(seen, key=lambda money: money.balance_wei, default=None)

    @property
    def gas(self) -> tuple[GasOfKey, ...]:
        """Each key's balance at the last check. Keys that were not checked yet are left out."""
        return tuple(
            GasOfKey(
                address=signer.address,
                balance_wei=money.balance_wei,
                calls=money.lasts_for(KEY_GAS),
            )
            for signer in self._signers
            if (money := signer.seen_money) is not None
        )

    @property
    def about(self) -> str:
        """Each key's address, its ETH at the last check, and how many settlements that pays for."""
        return "; ".join(_describe(signer) for signer in self._signers)


def _describe(signer: Signer) -> str:
    money = signer.seen_money
    if money is None:
        return signer.address
    count = money.lasts_for(KEY_GAS)
    return (
        f"{signer.address} holds {money.balance_wei / 10**18:.6f} ETH for gas, "
        f"enough for about {count:,} settlement{'' if count == 1 else 's'}"
    )
