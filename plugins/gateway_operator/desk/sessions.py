"""The operator's sessions."""

import contextlib
import hashlib
import secrets

import attrs

from gateway.errors import ActionRefused, NotFound
from gateway.store.sql import Connection
from gateway_operator.audit_log import ActionRecord, Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.logins import OperatorSession
from gateway_operator.sql import actions, logins, sessions
from gateway_operator.sql.logins import RefusedLogins

# Idle timeout, and longest life, in seconds.
IDLE_S = 12 * 3600
MAX_S = 7 * 86_400
# Seconds.
FRESH_S = 600
# How often use is recorded, in seconds.
_SEEN_EVERY_S = 60
_MAX_DEVICE_CHARS = 200
_LISTED_REFUSED = 50
_MAX_LOGINS = 50
# Of refused logins, in the audit log.
_LOGIN = "login"


@attrs.frozen(kw_only=True)
class NewLogin:
    """A successful login."""

    address: str

    # The User-Agent header.
    device: str

    # `password`, `password and code`, or `passkey`.
    by: str

    is_known: bool


async def open_session(desk: Desk, login: NewLogin, password: str) -> tuple[str, OperatorSession]:
    """Open a session; return the cookie's secret, and the session.

    `password` is the fingerprint of the password's hash: a new password ends the session.
    """
    secret, now = secrets.token_urlsafe(32), desk.now()
    session = OperatorSession(
        id=_digest(secret),
        created_at=now,
        seen_at=now,
        fresh_until=now + FRESH_S,
        address=login.address,
        device=_plain(login.device),
    )
    action = NewAction(
        actor=Actor(door="page", name=session.short, address=login.address),
        at=now,
        action="login",
        subject=f"session {session.short}",
        after={"by": login.by, "knownBrowser": login.is_known, "device": session.device},
    )
    await desk.records.act(sessions.insert, session, password, action=action)
    return secret, session


async def find_session(desk: Desk, secret: str, password: str) -> OperatorSession | None:
    """Return the open session of a cookie's secret, and record its use."""
    now = desk.now()
    session = await desk.store.read(
        sessions.find_open, _digest(secret), password, now - IDLE_S, now - MAX_S
    )
    if session is not None and now - session.seen_at >= _SEEN_EVERY_S:
        await desk.store.write(sessions.note_seen, session.id, now)
    return session


async def list_sessions(desk: Desk, password: str) -> list[OperatorSession]:
    """Return the open sessions, the most recently used first."""
    now = desk.now()
    return await desk.store.read(sessions.list_open, password, now - IDLE_S, now - MAX_S)


async def end_session(desk: Desk, actor: Actor, session: OperatorSession) -> None:
    """End a session."""
    action = NewAction(
        actor=actor, at=desk.now(), action="session.end", subject=f"session {session.short}"
    )
    await desk.records.act(sessions.end, session.id, desk.now(), action=action)


async def find_listed(desk: Desk, short: str, password: str) -> OperatorSession:
    """Return an open session by its short name; raises `ActionRefused` if there is none."""
    for session in await list_sessions(desk, password):
        if session.short == short:
            return session
    raise ActionRefused("This session has ended already.")


def is_fresh(desk: Desk, session: OperatorSession) -> bool:
    """Whether the operator authenticated within the last minutes."""
    return desk.now() < session.fresh_until


async def make_fresh(desk: Desk, actor: Actor, session: OperatorSession, by: str) -> None:
    """Record that the operator authenticated again; `by` is the method."""
    action = NewAction(
        actor=attrs.evolve(actor, request=None),
        at=desk.now(),
        action="session.fresh",
        subject=f"session {session.short}",
        after={"by": by},
    )
    await desk.records.act(sessions.set_fresh, session.id, desk.now() + FRESH_S, action=action)


async def note_refused(desk: Desk, address: str) -> None:
    """Count a refused login."""
    action = NewAction(
        actor=Actor(door="page", name="an unknown client", address=address),
        at=desk.now(),
        action="login.refused",
        subject=_LOGIN,
    )
    await desk.store.write(logins.count_refused, action)


async def list_refused(desk: Desk) -> list[RefusedLogins]:
    """Return the newest refused logins, by address and hour."""
    return await desk.store.read(logins.list_refused, _LISTED_REFUSED)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _plain(device: str) -> str:
    return "".join(char for char in device if char.isprintable())[:_MAX_DEVICE_CHARS]


async def find_login(desk: Desk, number: str) -> ActionRecord:
    """Return a recent login by the id of its action; raises `NotFound`."""
    for one in await desk.store.sum(actions.find, None, _MAX_LOGINS, None, "login"):
        if str(one.id) == number:
            return one
    raise NotFound("There is no such login among the newest ones.")


async def own_login(desk: Desk, actor: Actor, login: ActionRecord) -> None:
    """Record that a login was the operator's own, which ends its notice."""
    action = NewAction(actor=actor, at=desk.now(), action="login.mine", subject=str(login.id))
    with contextlib.suppress(AlreadyDone):
        await desk.records.act(_nothing, action=action)


def _nothing(_: Connection) -> None:
    """Change nothing: the audit log's row is the record."""
