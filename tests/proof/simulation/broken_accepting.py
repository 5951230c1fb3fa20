"""Mutants of accepting a payment: claims, order of checks, responses."""

from typing import Any

import attrs

from gateway.chain import signer
from gateway.domain import Block, PaymentState
from gateway.domain.eip3009 import transaction_key, transfer_calldata
from gateway.errors import PaymentRequired, TxAlreadyUsed
from gateway.payments import Payments, x402
from gateway.store import SqliteStore
from gateway.store import direct_payments as writes
from gateway.store.payments import is_claimed
from gateway.store.sql import as_write
from gateway_x402.verifier import X402Verifier
from tests.proof.simulation.mutant import ONE_USE, Mutant, patched


def direct_ignores_claims() -> Mutant:
    original = writes.accept_direct

    def accept_direct(
        db: Any, task: Any, tx_hash: str, transfers: Any, key: Any, **more: Any
    ) -> Any:
        unpaired = [attrs.evolve(transfer, authorization_key=None) for transfer in transfers]
        return original(db, task, tx_hash, unpaired, key, **more)

    return Mutant(
        "the direct flow ignores auth: claims",
        ((SqliteStore, "accept_direct", as_write(accept_direct)),),
        (ONE_USE,),
    )


def broadcast_before_claim() -> Mutant:
    original = Payments._reserve

    async def _reserve(self: Any, purchase: Any) -> Any:
        purchase.check_terms(self.now())
        if await purchase.verifier.check_chain(purchase.signed):
            await _broadcast(self, purchase.quote, purchase.signed)
        return await original(self, purchase)

    return Mutant("broadcast before the claim (T1)", ((Payments, "_reserve", _reserve),))


async def _broadcast(self: Payments, quote: Any, authorization: Any) -> None:
    settler: Any = self.settlements.settler
    data = transfer_calldata(authorization)
    if not hasattr(settler, "_keys"):
        chain: Any = self.chain
        chain.life.relay.settle(data)
        return
    key = settler._keys._signers[0]
    count = await self.chain.transaction_count(key.address)
    nonce = await key._journal.next_nonce(key.address, count)
    call = signer.Call(to=quote.network.token, data=data, gas=150_000)
    signed = key._sign(key._make_transaction(call, nonce, (10**9, 10**6)))
    await self.chain.send(signed.raw)


def refuse_on_timeout() -> Mutant:
    original = Payments._wait_for_outcome

    async def _wait_for_outcome(self: Any, task: Any) -> Any:
        task = await original(self, task)
        if task.payment.state in (PaymentState.RESERVED, PaymentState.SETTLING):
            raise PaymentRequired("invalid_exact_evm_unknown")
        return task

    return Mutant("402 on a time-out", ((Payments, "_wait_for_outcome", _wait_for_outcome),))


def two_transactions() -> Mutant:
    original = writes.accept_direct

    def check(db: Any, tx_hash: str) -> None:
        if is_claimed(db, transaction_key(tx_hash)):
            raise TxAlreadyUsed("checked")

    def insert(db: Any, *arguments: Any, **more: Any) -> Any:
        with patched(
            (writes, "_find_claimed", find_nothing),
            (writes, "find_claims", find_nothing),
            (writes, "claim", claim_or_ignore),
        ):
            return original(db, *arguments, **more)

    async def accept_direct(
        self: Any, task: Any, tx_hash: str, transfers: Any, key: Any, **more: Any
    ) -> Any:
        await self._write(check, tx_hash)
        return await self._write(insert, task, tx_hash, transfers, key, **more)

    return Mutant(
        "check and insert in two transactions",
        ((SqliteStore, "accept_direct", accept_direct),),
        (ONE_USE,),
    )


def find_nothing(db: Any, *_: Any) -> Any:
    return db.execute("SELECT 1 WHERE 1 = 0")


def claim_or_ignore(db: Any, key: str, payment_id: int) -> None:
    db.execute("INSERT OR IGNORE INTO claims (key, payment_id) VALUES (?, ?)", (key, payment_id))


def window_first() -> Mutant:
    original, find_x402 = Payments._find_or_reserve, Payments.find_x402

    async def _find_or_reserve(self: Any, purchase: Any, **more: Any) -> Any:
        purchase.check_terms(self.now())
        return await original(self, purchase, **more)

    async def find(self: Any, sent: Any, header: str, *more: Any, **named: Any) -> Any:
        verifier = self.methods.first
        verifier.check_terms(verifier.read(header), sent.quote, self.now())
        return await find_x402(self, sent, header, *more, **named)

    return Mutant(
        "validity check before the claim lookup",
        ((Payments, "_find_or_reserve", _find_or_reserve), (Payments, "find_x402", find)),
    )


def spent_is_the_end() -> Mutant:
    original = X402Verifier.check_chain

    async def check_chain(self: Any, authorization: Any) -> bool:
        if not await original(self, authorization):
            raise PaymentRequired("invalid_exact_evm_nonce_already_used")
        return True

    return Mutant("a spent nonce is the end", ((X402Verifier, "check_chain", check_chain),))


def any_request() -> Mutant:
    return Mutant(
        "a known authorization answers any request",
        ((x402, "_require_same_payment", lambda task, proof, new: task),),
    )


def reserved_for_nobody() -> Mutant:
    return Mutant(
        "a reserved amount is forgotten",
        ((writes, "find_holders", find_nothing),),
    )


def wrong_end_of_a_second() -> Mutant:
    def may_precede(self: Any, at: float) -> bool:
        """Date a block at the end of its second."""
        return at >= self.timestamp + 1

    return Mutant("the wrong end of a second", ((Block, "may_precede", may_precede),))
