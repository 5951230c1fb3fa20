"""The seams inside production modules: logs, random identifiers, jitter, the slow signature."""

import contextlib
import functools
import sys
import uuid
from collections.abc import Iterator
from typing import Any

from gateway import app
from gateway.chain import signer
from gateway.concurrency.standstills import Standstills
from gateway.tasks import outcome
from gateway_local_settler import batches
from tests.proof.simulation.blocks import encode_raw, raw_hash, read_raw
from tests.proof.simulation.world import World


class TraceLog:
    """Replaces a module's logger; logged exceptions go to the trace."""

    def __init__(self, world: World) -> None:
        self._world = world

    def info(self, event: str, **fields: Any) -> None:
        if self._world.is_traced:
            self._world.note(f"log {event} {fields}")

    warning = error = info

    def exception(self, event: str, **fields: Any) -> None:
        error = sys.exc_info()[1]
        self._world.faults[f"logged: {event} {type(error).__name__}"] += 1
        self._world.note(f"log {event} {fields} {error!r}")


def _fast_signature(secret: bytes, transaction: dict[str, object]) -> tuple[str, bytes]:
    raw = encode_raw(_address(secret), transaction)
    return raw_hash(raw), raw


_ADDRESSES: dict[bytes, str] = {}


def _address(secret: bytes) -> str:
    if secret not in _ADDRESSES:
        _ADDRESSES[secret] = signer.address_of(secret)
    return _ADDRESSES[secret]


@functools.lru_cache(maxsize=1)
def _logging_modules() -> tuple[Any, ...]:
    return tuple(
        module
        for name, module in {**sys.modules, batches.__name__: batches}.items()
        if name.startswith("gateway") and hasattr(module, "_log")
    )


@contextlib.contextmanager
def seams(world: World) -> Iterator[None]:
    """Install the seams of one history, and restore the originals after it."""
    log = TraceLog(world)
    changes: list[tuple[Any, str, Any]] = [
        *((module, "_log", log) for module in _logging_modules()),
        (uuid, "uuid4", lambda: uuid.UUID(bytes=world.dice.randbytes(16), version=4)),
        (outcome, "random", world.dice),
        # By the history's clocks, or each block would be days ahead of this machine.
        (app, "Standstills", functools.partial(Standstills, wall=world.now, monotonic=world.now)),
        (signer, "sign_transaction", _fast_signature),
        (signer, "read_transaction", read_raw),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    try:
        for module, name, value in changes:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
