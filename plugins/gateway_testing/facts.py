"""Sample tasks, transfers and payments for tests, and the store calls that create them."""

import itertools
from collections.abc import Sequence
from typing import Any

import attrs

from gateway.contracts import Lease, NewTask, SignedTransaction, UnsignedBatch, UnsignedTransaction
from gateway.domain import (
    Authorization,
    Block,
    Endpoint,
    GenerationRequest,
    Receipt,
    StoredOutput,
    StoredResult,
    Task,
    Transfer,
)
from gateway.domain.eip3009 import BASE
from gateway.store import SqlStore

NOW = 1_800_000_000.0
PRICE = 20_000  # units
PAYER = "0x" + "a1" * 20
WALLET = "0x" + "b2" * 20
SIGNER = "0x" + "c3" * 20
ENDPOINT = Endpoint(
    slug="picture",
    title="A picture",
    description="A picture.",
    model="pixel",
    provider="none",
    capability="text-to-image",
    price_units=PRICE,
)
RESULT = StoredResult(
    outputs=(
        StoredOutput(
            key="1/0.png",
            media_type="image/png",
            size_bytes=3,
            sha256="0" * 64,
            width=1,
            height=1,
        ),
    ),
    text="# A text",
)
_NUMBERS = itertools.count(1)


def tx_hash(number: int) -> str:
    """Return a made-up transaction hash."""
    return f"0x{number:064x}"


def new_task(**changes: Any) -> NewTask:
    """Return a task to accept; `changes` are fields of `NewTask`."""
    request = changes.pop("request", GenerationRequest(prompt="a boat"))
    task = NewTask(
        id=f"task-{next(_NUMBERS)}",
        endpoint=ENDPOINT,
        request=request,
        request_hash=request.fingerprint(ENDPOINT.slug),
        price_units=PRICE,
        created_at=NOW,
    )
    return attrs.evolve(task, **changes)


def authorization(nonce: int = 1, sender: str = PAYER) -> Authorization:
    """Return a signed authorization; its signature is not a real one."""
    return Authorization(
        sender=sender,
        recipient=WALLET,
        value_units=PRICE,
        valid_after=0,
        valid_before=int(NOW) + 300,
        nonce=tx_hash(nonce),
        signature=b"\1" * 65,
    )


def receipt_of(transaction: SignedTransaction, **facts: Any) -> Receipt:
    """Return the receipt of a successful transaction in a current block."""
    block = Block(number=7, hash=tx_hash(7), timestamp=int(NOW))
    return Receipt(tx_hash=transaction.tx_hash, succeeded=True, block=block, **facts)


def key_of(signed: Authorization) -> str:
    """Return the claim key of an authorization."""
    return BASE.authorization_key(signed.sender, signed.nonce)


def transfer(tx: int = 1, index: int = 0, units: int = PRICE, key: str | None = None) -> Transfer:
    """Return a transfer to the wallet; `key` pairs it with an authorization."""
    return Transfer(
        tx_hash=tx_hash(tx),
        log_index=index,
        sender=PAYER,
        amount_units=units,
        authorization_key=key,
    )


def paying(task: Task, tx: int = 1, index: int = 0, units: int = PRICE) -> Transfer:
    """Return a transfer by a task's own authorization."""
    signed = task.payment.authorization
    return transfer(tx, index, units, key=key_of(signed) if signed is not None else None)


def signed_transaction(nonce: int, fee: int = 100, *, signer: str = SIGNER) -> SignedTransaction:
    """Return a settlement transaction; hash and bytes are derived from nonce and fee."""
    return SignedTransaction(
        signer=signer,
        nonce=nonce,
        tx_hash=tx_hash(1_000_000 * (nonce + 1) + fee),
        raw=b"raw %d %d" % (nonce, fee),
        max_fee_wei=fee,
        max_priority_wei=1,
        sent_at=NOW,
    )


def unsigned_transaction(
    chain_nonce: int = 0,
    used_nonces: int = 0,
    *,
    signer: str = SIGNER,
    signers: Sequence[str] = (SIGNER, WALLET),
    most_waiting: int = 100,
) -> UnsignedTransaction:
    """Return a transaction that gets its nonce from the journal."""
    return UnsignedTransaction(
        signer=signer,
        signers=signers,
        chain_nonce=chain_nonce,
        used_nonces=used_nonces,
        most_waiting=most_waiting,
        sign=lambda nonce: signed_transaction(nonce, signer=signer),
    )


def unsigned_batch(
    *payments: int, signer: str = SIGNER, fee: int = 100, most_waiting: int = 100
) -> UnsignedBatch:
    """Return a transaction of several payments that gets its nonce from the journal."""
    return UnsignedBatch(
        signer=signer,
        signers=(SIGNER, WALLET),
        chain_nonce=0,
        most_waiting=most_waiting,
        payments=payments,
        sign=lambda nonce, taken: signed_transaction(nonce, fee + len(taken), signer=signer),
    )


async def reserved(store: SqlStore, nonce: int = 1, **changes: Any) -> Task:
    """Reserve a task for a new authorization."""
    signed = authorization(nonce)
    task = await store.reserve(new_task(**changes), signed, key_of(signed), 7)
    assert task is not None
    return task


async def settling(store: SqlStore, nonce: int = 1, chain_nonce: int = 0) -> Task:
    """Reserve a task, and mark its payment as settling."""
    task = await reserved(store, nonce)
    number = await store.next_nonce(SIGNER, chain_nonce)
    await store.begin_settling(task.payment.id, signed_transaction(number), now=NOW)
    return task


async def queued(store: SqlStore, tx: int = 1, **changes: Any) -> Task:
    """Accept a direct transfer: a paid task that waits for a worker."""
    task = new_task(**changes)
    return await store.accept_direct(task, tx_hash(tx), [transfer(tx)], None)


async def leased(store: SqlStore, tx: int = 1, **changes: Any) -> Lease:
    """Accept a direct transfer, and lease its task to a worker."""
    await queued(store, tx, **changes)
    (lease,) = await store.queue.lease(1, lease_s=60, now=NOW)
    return lease


async def known(store: SqlStore, task_id: str) -> Task:
    """Return a task; fail if there is none."""
    task = await store.task(task_id)
    assert task is not None
    return task


def kinds(outcomes: Sequence[object]) -> list[type]:
    """Return the types of the results of `asyncio.gather`."""
    return [type(outcome) for outcome in outcomes]
