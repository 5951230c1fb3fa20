"""Writes actions together with their audit rows."""

from collections.abc import Callable
from typing import Any, TypeVar

from gateway.store import SqlStore
from gateway_operator.audit_log import ActionRecord, NewAction
from gateway_operator.sql import actions

Value = TypeVar("Value")


class OperatorRecords:
    """Writes operators' actions, each with its audit row."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    async def act(self, write: Callable[..., Value], *arguments: Any, action: NewAction) -> Value:
        """Write the audit row and run `write(db, *arguments)`, both or neither.

        Returns and raises what `write` does. Raises `AlreadyDone` if the actor's request was
        carried out before, and `ActionRefused` if its key was used for another action.
        """
        value: Value = await self._store.write(actions.act, write, arguments, action)
        return value

    async def note(self, action: NewAction) -> None:
        """Write the audit row of an action that changes nothing else, such as a login.

        Raises `AlreadyDone` and `ActionRefused` like `act`.
        """
        await self._store.write(actions.insert, action)

    async def actions(
        self,
        before: int | None,
        limit: int,
        subject: str | None = None,
        action: str | None = None,
    ) -> list[ActionRecord]:
        """Return at most `limit` actions with an id below `before`, newest first."""
        return await self._store.sum(actions.find, before, limit, subject, action)
