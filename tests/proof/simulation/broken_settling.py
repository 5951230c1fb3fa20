"""Mutants of closing, recording and releasing a payment."""

from typing import Any

from gateway import CallReverted, Transfer, UnsignedTransaction
from gateway.chain import decode
from gateway.chain.signer import Signer
from gateway.domain.eip3009 import AUTHORIZATION_STATE, BASE, word
from gateway.payments import Reconciler, reconcile, refunds
from gateway.payments.nonce_events import EventNotLogged, EventNotMined
from gateway.store import nonces
from gateway.store.sqlite import writer
from gateway_facilitator_settler.settler import FacilitatorSettler
from tests.proof.simulation.loop import OWNER
from tests.proof.simulation.mutant import ONE_USE, Mutant

# 400 seconds of Base; it was 67 minutes when a block took two seconds.
_OLD_WINDOW = 2_000


def own_key(payment: Any) -> str:
    """Return the claim that an invented transfer needs, so that T3 accepts it."""
    return BASE.authorization_key(payment.authorization.sender, payment.authorization.nonce)


def state_alone() -> Mutant:
    async def _close_spent(self: Any, payment: Any, signed: Any, block: Any) -> bool:
        made_up = Transfer(
            tx_hash=signed.nonce,
            log_index=0,
            sender=payment.payer,
            amount_units=payment.price_units,
            authorization_key=own_key(payment),
        )
        await self._store.settle(payment.id, made_up, now=self._now())
        return True

    return Mutant(
        "reconcile on authorizationState alone", ((Reconciler, "_close_spent", _close_spent),)
    )


def unpinned() -> Mutant:
    async def is_spent(chain: Any, signed: Any, block: Any) -> bool:
        call = AUTHORIZATION_STATE + word(signed.sender) + word(signed.nonce)
        return bool(await chain.call_uint(call))

    return Mutant("negative proof from an unpinned block", ((reconcile, "is_spent", is_spent),))


def window_in_blocks() -> Mutant:
    original = reconcile.find_event

    async def find_event(*arguments: Any, known: Any, **more: Any) -> Any:
        event = await original(*arguments, known=known, **more)
        is_old = event is not None and known.number - event.receipt.block.number > _OLD_WINDOW
        return None if is_old else event

    return Mutant("a window in blocks", ((reconcile, "find_event", find_event),))


def missing_log_proves() -> Mutant:
    original = reconcile.find_event

    async def find_event(*arguments: Any, **more: Any) -> Any:
        try:
            return await original(*arguments, **more)
        except (EventNotMined, EventNotLogged):
            return None

    return Mutant(
        "a negative proof from logs that may lag",
        ((reconcile, "find_event", find_event), (reconcile, "LOG_LAG_S", 0)),
    )


def status_alone() -> Mutant:
    async def _settle_by(self: Any, payment: Any, receipt: Any) -> bool:
        if not receipt.succeeded:
            return False
        believed = Transfer(
            tx_hash=receipt.tx_hash,
            log_index=next((log.index + 1 for log in receipt.logs), payment.id),
            sender=payment.payer,
            amount_units=payment.price_units,
            authorization_key=own_key(payment),
        )
        await self._store.settle(payment.id, believed, now=self._now())
        return True

    return Mutant(
        "trust receipt.status alone", ((Reconciler, "_settle_by", _settle_by),), (ONE_USE,)
    )


def preconfirmed_counts() -> Mutant:
    original = decode.read_receipt

    def read_receipt(raw: Any, raw_block: Any, tx_hash: str) -> Any:
        known = raw_block or {"number": "0x1", "timestamp": "0x1"}
        return original(raw, known | {"hash": raw["blockHash"]}, tx_hash)

    return Mutant("a receipt counts before its block", ((decode, "read_receipt", read_receipt),))


def nonce_twice() -> Mutant:
    return Mutant(
        "a signer's nonce given out twice",
        ((nonces, "first_unused", lambda used, chain_nonce: chain_nonce),),
    )


async def _prepare(self: Signer, payment: Any, call: Any) -> tuple[Any, Any] | None:
    """Sign with a nonce read before the write; return it, and the input of the write."""
    used = await self._journal.nonces_of(payment.id, *self._signers)
    if used and self._most_nonces is not None and used >= await self._most_nonces(payment):
        return None
    fees = await self.bid()
    try:
        await self.simulate(call, fees)
    except CallReverted:
        return None
    count = await self._chain.transaction_count(self.address)
    nonce = await self._journal.next_nonce(self.address, count)
    signed = self._sign(self._make_transaction(call, nonce, fees))
    unsigned = UnsignedTransaction(
        signer=self.address,
        signers=self._signers,
        chain_nonce=count,
        used_nonces=used,
        most_waiting=64,
        sign=lambda nonce: signed,
    )
    return signed, unsigned


def nonce_before_write() -> Mutant:
    async def _begin(self: Any, payment: Any, call: Any, _: Any = None) -> Any:
        prepared = await _prepare(self, payment, call)
        return None if prepared is None else await self._write_down(payment, prepared[1])

    return Mutant(
        "a nonce decided before its write",
        (
            (Signer, "_begin", _begin),
            (nonces, "check_nonce_free", lambda db, transaction: None),
        ),
    )


def broadcast_before_row() -> Mutant:
    async def _begin(self: Any, payment: Any, call: Any, _: Any = None) -> Any:
        prepared = await _prepare(self, payment, call)
        if prepared is None:
            return None
        await self._chain.send(prepared[0].raw)
        return await self._write_down(payment, prepared[1])

    return Mutant("broadcast before its row (T2)", ((Signer, "_begin", _begin),))


def late_commit() -> Mutant:
    def _commit_batch(writes: Any, db: Any) -> list[Any]:
        if not db.in_transaction:
            db.execute("BEGIN IMMEDIATE")
        outcomes = [writer._run_in_savepoint(db, write) for write in writes]
        if db.execute("SELECT abs(random()) % 8").fetchone()[0] == 0:
            db.execute("COMMIT")
        return outcomes

    return Mutant("answered before COMMIT", ((writer, "_commit_batch", _commit_batch),))


def believed_facilitator() -> Mutant:
    original = FacilitatorSettler._settle

    async def _settle(self: Any, payment: Any, signed: Any) -> Any:
        found = await original(self, payment, signed)
        if found is not None:
            transfer = Transfer(
                tx_hash=found,
                log_index=payment.id,
                sender=payment.payer,
                amount_units=payment.price_units,
                authorization_key=own_key(payment),
            )
            await self._journal.settle(payment.id, transfer, now=self._now())
        return found

    return Mutant("a facilitator's word settles", ((FacilitatorSettler, "_settle", _settle),))


def refund_anew() -> Mutant:
    original = refunds.refund_nonce

    def refund_nonce(payment: Any, network: Any) -> str:
        life: Any = OWNER.get()
        return original(payment, network)[:-2] + f"{life.number % 256:02x}"

    return Mutant(
        "each life refunds under a nonce of its own",
        ((refunds, "refund_nonce", refund_nonce),),
    )
