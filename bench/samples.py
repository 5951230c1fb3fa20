"""Tasks and payments to fill a store: distinct, valid, and cheap to make."""

import io
import uuid
from contextlib import redirect_stdout

import structlog
from gateway_bench import INSTANT, InstantProvider

from gateway.catalog.catalog import Catalog
from gateway.contracts import NewTask
from gateway.domain import GenerationRequest, Task, Transfer
from gateway.store import SqlStore
from gateway.telemetry.logs import configure_logs

REQUEST = GenerationRequest(prompt="A lighthouse at dusk, oil on canvas, seen from the sea")


def new_task(now: float, task_id: str | None = None) -> NewTask:
    """Return a new task, with a new id by default."""
    return NewTask(
        id=task_id or str(uuid.uuid4()),
        endpoint=INSTANT,
        request=REQUEST,
        request_hash=REQUEST.fingerprint(INSTANT.slug),
        price_units=INSTANT.price_units,
        created_at=now,
    )


def new_transfer() -> Transfer:
    """Return a transfer of exactly the price, in its own transaction."""
    return Transfer(
        tx_hash="0x" + uuid.uuid4().hex * 2,
        log_index=7,
        sender="0x" + "2" * 40,
        amount_units=INSTANT.price_units,
    )


async def accept(store: SqlStore, now: float, task_id: str | None = None) -> Task:
    """Put a paid task into the queue, as the direct flow does (T1')."""
    transfer = new_transfer()
    return await store.accept_direct(new_task(now, task_id), transfer.tx_hash, [transfer], None)


def catalog() -> Catalog:
    """Return a catalogue with the instant endpoint only."""
    made = Catalog({})
    made.register(INSTANT, InstantProvider(), "bench")
    return made


def log_to_nowhere() -> None:
    """Render log lines as in production, and discard them."""
    structlog.reset_defaults()
    with redirect_stdout(io.StringIO()) as sink:
        configure_logs("json")
    sink.write = len  # type: ignore[method-assign,assignment]
