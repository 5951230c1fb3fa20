"""Commits money transactions with the production store, and prints which of them are durable.

Runs under power.c. Each line on standard output has the length of the disk's log at the time of the
acknowledgement, and the content of the commit in words that `power.FACTS` can find.
"""

import asyncio
import os
import sqlite3
import sys
from pathlib import Path

from gateway.store.sqlite import store as sqlite
from gateway.store.sqlite.store import SqliteStore
from gateway_testing import facts

_LOG = Path(os.environ["POWER_LOG"])
_AT_ONCE = 12


def acknowledged(*words: str) -> None:
    """Print what is acknowledged so far."""
    lines = "".join(f"{_LOG.stat().st_size} {fact}\n" for fact in words)
    sys.stdout.write(lines)
    sys.stdout.flush()


async def direct(store: SqliteStore, number: int) -> None:
    """T1'."""
    task = await facts.queued(store, number)
    acknowledged(f"payment {task.id} settled", f"claim tx:{facts.tx_hash(number)}")


async def released(store: SqliteStore, number: int) -> None:
    """T1, TR."""
    task = await facts.reserved(store, number)
    acknowledged(
        f"payment {task.id} reserved", f"claim {facts.key_of(facts.authorization(number))}"
    )
    await store.release(task.payment.id, now=facts.NOW)
    acknowledged(f"payment {task.id} released", f"task {task.id} dropped")


async def settled(store: SqliteStore, number: int, signing: asyncio.Lock) -> None:
    """T1, T2, T3."""
    async with signing:  # as the settler does: one nonce after the other
        task = await facts.settling(store, number)
    acknowledged(f"payment {task.id} reserved", f"payment {task.id} settling")
    await store.settle(task.payment.id, facts.paying(task, number), now=facts.NOW)
    acknowledged(f"payment {task.id} settled")


async def worked(store: SqliteStore, number: int) -> None:
    """T4, T5."""
    for lease in await store.queue.lease(3, lease_s=60, now=facts.NOW):
        if number % 3:
            await store.queue.complete(lease, facts.RESULT, expires_at=facts.NOW, now=facts.NOW)
            acknowledged(f"task {lease.task_id} completed")
        else:
            await store.queue.fail(lease, details="provider_error", error="No.", now=facts.NOW)
            acknowledged(f"task {lease.task_id} failed", f"payment {lease.task_id} refund_due")


async def load(folder: Path, rounds: int) -> None:
    """Let several clients commit at the same time, and exit without closing anything."""
    signing = asyncio.Lock()
    store = await SqliteStore(folder / "gateway.db").__aenter__()

    async def client(first: int) -> None:
        for number in range(first, rounds * _AT_ONCE, _AT_ONCE):
            await direct(store, 3 * number)
            await released(store, 3 * number + 1)
            await settled(store, 3 * number + 2, signing)
            await worked(store, number)

    await asyncio.gather(*(client(first) for first in range(_AT_ONCE)))
    sys.stdout.flush()
    os._exit(0)  # as by a power cut: no checkpoint, no orderly end


def weaken() -> None:
    """Open the database with a setting that is unsafe for money."""
    strong = sqlite._connect

    def connect(path: Path) -> sqlite3.Connection:
        db = strong(path)
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    sqlite._connect = connect


def main() -> None:
    folder, rounds, strength = sys.argv[1:]
    if strength == "NORMAL":
        weaken()
    asyncio.run(load(Path(folder), int(rounds)))


if __name__ == "__main__":
    main()
