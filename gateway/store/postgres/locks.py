"""Which writes must run one after the other over all nodes, because no unique key decides them.

SQLite lets one writer in. On PostgreSQL each write sees the state at its beginning, and two that
read the same rows could both go on. What a primary key or a state in a WHERE decides needs nothing
more: the loser runs again. The writes below decide by a sum or by the absence of rows, so each
waits for a lock by name, which is taken before its state of the database begins.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from gateway.store import meta, payments, refunds
from gateway.store.operators import actions, alarms
from gateway.store.operators import refunds as refund_actions


def _lock_reserve(_: Any, authorization: Any, *__: Any) -> str:
    # How much a payer has open, and whether its balance reaches all of it.
    return f"payer:{authorization.sender}"


def _lock_settling(_: int, transaction: Any, *__: Any) -> str | None:
    # The first nonce that the signer has not used, and how many wait.
    return f"signer:{transaction.signer}" if transaction is not None else None


def _lock_refunds(*_: Any) -> str:
    # The day's cap, the refund key's nonces, and the sums that an approval was shown.
    return "refunds"


def _lock_logins(*_: Any) -> str:
    # How many attempts there were in a window.
    return "logins"


def _lock_alarms(*_: Any) -> str:
    # Which alarms are open, and what was told.
    return "alarms"


_LOCKS: dict[Callable[..., Any], Callable[..., str | None]] = {
    payments.reserve: _lock_reserve,
    payments.begin_settling: _lock_settling,
    refunds.begin: _lock_refunds,
    refunds.decide: _lock_refunds,
    refund_actions.approve: _lock_refunds,
    refund_actions.reject: _lock_refunds,
    refund_actions.retry: _lock_refunds,
    refund_actions.take_back: _lock_refunds,
    meta.count_login_attempt: _lock_logins,
    alarms.play_round: _lock_alarms,
}


def lock_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> int | None:
    """Return the number of the advisory lock that a write needs, or None."""
    if function is actions.act:
        # An operator's action: the write itself is the first argument.
        function, arguments = arguments[0], arguments[1]
    name_lock = _LOCKS.get(function)
    name = name_lock(*arguments) if name_lock is not None else None
    return lock_number(name) if name is not None else None


def lock_number(name: str) -> int:
    """Return the number that stands for a name in PostgreSQL: 64 bits with a sign."""
    digest = hashlib.sha256(f"generation-gateway:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
