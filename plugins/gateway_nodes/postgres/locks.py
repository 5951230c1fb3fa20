"""Implements `gateway.store.sql` with PostgreSQL's advisory locks."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from gateway.store.sql import lock_names


def locks_of(function: Callable[..., Any], arguments: Sequence[Any]) -> Sequence[int]:
    """Return the advisory lock numbers of a write, in the order to take them."""
    return [lock_number(name) for name in lock_names(function, arguments)]


def lock_number(name: str) -> int:
    """Map a lock name to a signed 64-bit number, as PostgreSQL needs."""
    digest = hashlib.sha256(f"generation-gateway:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
