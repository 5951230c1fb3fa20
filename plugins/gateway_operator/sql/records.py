"""The audit log, and the actions that are written with their row of it."""

from collections.abc import Callable
from typing import Any, TypeVar

from gateway.store import SqlStore
from gateway_operator.audit_log import ActionRecord, NewAction
from gateway_operator.sql import actions

Value = TypeVar("Value")


class OperatorRecords:
    """Writes what operators do into a store, each action with its row of the audit log."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    async def act(self, write: Callable[..., Value], *arguments: Any, action: NewAction) -> Value:
        """Write down an action and run `write(db, *arguments)`, both or neither.

        Returns what `write` returns, and raises what it raises. Raises `AlreadyDone` where the
        actor's request was carried out before, and `ActionRefused` where another action had it.
        """
        value: Value = await self._store.write(actions.act, write, arguments, action)
        return value

    async def note(self, action: NewAction) -> None:
        """Write down an action that changes nothing in the database, such as a login.

        Raises what `act` raises.
        """
        await self._store.write(actions.insert, action)

    async def actions(
        self,
        before: int | None,
        limit: int,
        subject: str | None = None,
        action: str | None = None,
    ) -> list[ActionRecord]:
        """Return actions, newest first: those with an id below `before`, at most `limit`."""
        return await self._store.sum(actions.find, before, limit, subject, action)
