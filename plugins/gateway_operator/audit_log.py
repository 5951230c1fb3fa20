"""What an operator does and changes, as the store keeps it."""

from typing import Literal

import attrs

Door = Literal["page", "api", "cli", "gateway"]


@attrs.frozen(kw_only=True)
class Actor:
    """Who acts, and through which door."""

    door: Door

    # A session's short id, a token's name, or a user of the shell.
    name: str

    # Of the client; empty for the CLI.
    address: str = ""

    # What makes a repeated request known, such as an Idempotency-Key with the actor's name.
    request: str | None = None


@attrs.frozen(kw_only=True)
class NewAction:
    """What an operator did, before it is written down."""

    actor: Actor

    # Unix seconds.
    at: float

    # Such as `refund.approve`.
    action: str

    # A task, an endpoint, an alarm.
    subject: str
    reason: str = ""

    # What JSON can hold; None where there is nothing to say.
    before: object = None
    after: object = None


@attrs.frozen(kw_only=True)
class ActionRecord(NewAction):
    """What an operator did, as the store keeps it."""

    id: int


class AlreadyDone(Exception):
    """The same request was carried out before; `action` is what was written down then."""

    def __init__(self, action: ActionRecord) -> None:
        super().__init__(f"This was done already, as action {action.id}.")
        self.action = action
