"""Which writes must run one after the other over all nodes, because no unique key decides them.

SQLite lets one writer in. On PostgreSQL each write sees the state at its beginning, and two that
read the same rows could both go on. What a primary key or a state in a WHERE decides needs nothing
more: the loser runs again. The writes below decide by a sum or by the absence of rows, so each
waits for a lock by name, which is taken before its state of the database begins.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from gateway.store import batches, meta, method_payments, payments, provider_states, refunds
from gateway.store.operators import actions, alarms, logins, overrides, passkeys, tokens
from gateway.store.operators import refunds as refund_actions


def _lock_reserve(task: Any, authorization: Any, *_: Any) -> list[str]:
    # How much a payer has open, and whether its balance reaches all of it.
    return [*_lock_files(task), f"payer:{authorization.sender}"]


def _lock_files(task: Any, *_: Any) -> list[str]:
    # How much the files of unpaid tasks take.
    return ["files"] if task.request.attachment is not None else []


def _lock_settling(_: int, transaction: Any, *__: Any) -> list[str]:
    # The first nonce that the signer has not used, and how many wait.
    return [f"signer:{transaction.signer}"] if transaction is not None else []


def _lock_batch(batch: Any, *_: Any) -> list[str]:
    return [f"signer:{batch.signer}"]


def _lock_refunds(*_: Any) -> list[str]:
    # The day's cap, the refund key's nonces, and the sums that an approval was shown.
    return ["refunds"]


def _lock_logins(*_: Any) -> list[str]:
    # How many attempts there were in a window.
    return ["logins"]


def _lock_refused_logins(*_: Any) -> list[str]:
    # When the audit log was last told of them, and how many rows there are.
    return ["refused-logins"]


def _lock_tokens(*_: Any) -> list[str]:
    # The names of valid tokens, and how many there are.
    return ["tokens"]


def _lock_passkeys(*_: Any) -> list[str]:
    # How many passkeys there are.
    return ["passkeys"]


def _lock_alarms(*_: Any) -> list[str]:
    # Which alarms are open, and what was told.
    return ["alarms"]


def _lock_overrides(*_: Any) -> list[str]:
    # What an operator saw before the change.
    return ["overrides"]


def _lock_providers(*_: Any) -> list[str]:
    # All nodes may meet the same refusal in the same second, and would lose many races.
    return ["providers"]


_LOCKS: dict[Callable[..., Any], Callable[..., list[str]]] = {
    payments.reserve: _lock_reserve,
    method_payments.reserve: _lock_files,
    payments.begin_settling: _lock_settling,
    batches.begin_batch: _lock_batch,
    refunds.begin: _lock_refunds,
    refunds.decide: _lock_refunds,
    refund_actions.approve: _lock_refunds,
    refund_actions.reject: _lock_refunds,
    refund_actions.retry: _lock_refunds,
    refund_actions.take_back: _lock_refunds,
    meta.count_login_attempt: _lock_logins,
    logins.count_refused: _lock_refused_logins,
    tokens.insert: _lock_tokens,
    passkeys.insert: _lock_passkeys,
    alarms.play_round: _lock_alarms,
    overrides.insert: _lock_overrides,
    provider_states.exchange: _lock_providers,
}


def locks_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Sequence[int]:
    """Return the numbers of the advisory locks that a write needs, in the order to take them."""
    if function is actions.act:
        # An operator's action: the write itself is the first argument.
        function, arguments = arguments[0], arguments[1]
    name_locks = _LOCKS.get(function)
    return [lock_number(name) for name in name_locks(*arguments)] if name_locks else []


def lock_number(name: str) -> int:
    """Return the number that stands for a name in PostgreSQL: 64 bits with a sign."""
    digest = hashlib.sha256(f"generation-gateway:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
