"""Tokens of the JSON API."""

import hashlib
import re
import secrets

import attrs

from gateway.errors import WrongValue
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.logins import OperatorToken, Scope
from gateway_operator.sql import tokens

PREFIX = "ggw_"
DAYS = 90
MAX_DAYS = 366
# How often use is recorded, in seconds.
_USED_EVERY_S = 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")


@attrs.frozen(kw_only=True)
class NewToken:
    """A new token, with the secret that is shown only once."""

    secret: str = attrs.field(repr=False)
    token: OperatorToken


async def make_token(
    desk: Desk, actor: Actor, name: str, scope: str, *, days: int = DAYS
) -> NewToken:
    """Create a token.

    Raises `WrongValue`, and `ActionRefused` if a valid token has this name.
    """
    kind = _parse_scope(scope)
    if not _NAME.fullmatch(name):
        raise WrongValue(
            "A token's name has 1 to 40 letters, digits, spaces, dots, dashes or underscores, and "
            "begins with a letter or digit: say what uses it, such as accounting."
        )
    if not 1 <= days <= MAX_DAYS:
        raise WrongValue(f"A token is valid for 1 to {MAX_DAYS} days.")
    secret, now = PREFIX + secrets.token_urlsafe(32), desk.now()
    action = NewAction(
        actor=actor,
        at=now,
        action="token.new",
        subject=f"token {name}",
        after={"scope": kind, "days": days},
    )
    token = await desk.records.act(
        *(tokens.insert, _digest(secret), name, kind, now, now + days * 86_400), action=action
    )
    return NewToken(secret=secret, token=token)


async def find_token(desk: Desk, secret: str) -> OperatorToken | None:
    """Return the valid token of a secret, and record its use."""
    if not secret.startswith(PREFIX):
        return None
    now = desk.now()
    token = await desk.store.read(tokens.find_valid, _digest(secret), now)
    if token is not None and now - (token.used_at or 0) >= _USED_EVERY_S:
        await desk.store.write(tokens.note_used, token.id, now)
    return token


async def list_tokens(desk: Desk) -> list[OperatorToken]:
    """Return the newest tokens, including revoked and expired ones."""
    return await desk.store.read(tokens.list_all)


async def revoke_token(desk: Desk, actor: Actor, name: str) -> None:
    """Revoke a token; raises `ActionRefused` if no valid token has this name."""
    action = NewAction(actor=actor, at=desk.now(), action="token.revoke", subject=f"token {name}")
    await desk.records.act(tokens.revoke, name, desk.now(), action=action)


def _parse_scope(text: str) -> Scope:
    if text == "read":
        return "read"
    if text == "act":
        return "act"
    raise WrongValue("A token's scope is read or act.")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
