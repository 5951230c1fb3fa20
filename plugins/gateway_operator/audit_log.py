"""Entries of the audit log: every action of an operator."""

from typing import Literal

import attrs

Door = Literal["page", "api", "cli", "gateway"]


@attrs.frozen(kw_only=True)
class Actor:
    """Who acts, and by which interface."""

    door: Door

    # A session's short id, a token's name, or a shell user.
    name: str

    # The client's address; empty for the CLI.
    address: str = ""

    # Identifies a repeated request: such as the actor's name with an Idempotency-Key.
    request: str | None = None


@attrs.frozen(kw_only=True)
class NewAction:
    """An action that is not stored yet."""

    actor: Actor

    # Unix seconds.
    at: float

    # Such as `refund.approve`.
    action: str

    # A task, an endpoint or an alarm.
    subject: str
    reason: str = ""

    # JSON values.
    before: object = None
    after: object = None


@attrs.frozen(kw_only=True)
class ActionRecord(NewAction):
    """A stored action."""

    id: int


class AlreadyDone(Exception):
    """The request was carried out before, as `action`."""

    def __init__(self, action: ActionRecord) -> None:
        super().__init__(f"This was done already, as action {action.id}.")
        self.action = action
