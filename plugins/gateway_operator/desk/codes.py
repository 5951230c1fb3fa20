"""Two-factor login by six-digit codes (RFC 6238)."""

import importlib
import re
from types import ModuleType

import attrs

from gateway.errors import ActionRefused, WrongValue
from gateway.store.sql import Connection
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.logins import OperatorCodes

STEP_S = 30
# Neighbouring codes are accepted too, for clock differences and slow typing.
_STEPS_AROUND = (0, -1, 1)
_CODE = re.compile(r"[0-9]{6}")
_SUBJECT = "codes"


@attrs.frozen(kw_only=True)
class CodesSetUp:
    """The data to set up an app, until a code confirms it."""

    secret: str = attrs.field(repr=False)

    # A QR code as SVG.
    svg: str = attrs.field(repr=False)


async def are_on(desk: Desk) -> bool:
    """Whether a login needs a code."""
    known = await desk.store.read(_find)
    return known is not None and known.confirmed_at is not None


async def take_code(desk: Desk, code: str) -> bool:
    """Whether this code is correct and unused. Uses it up."""
    known = await desk.store.read(_find)
    if known is None or known.confirmed_at is None:
        return False
    step = _find_step(known.secret, code, desk.now())
    return step is not None and await desk.store.write(_take, step)


async def begin(desk: Desk, actor: Actor) -> None:
    """Create an unconfirmed secret; raises `ActionRefused` if codes are on."""
    action = NewAction(actor=actor, at=desk.now(), action="codes.begin", subject=_SUBJECT)
    await desk.records.act(_begin, _pyotp().random_base32(), action=action)


async def read_set_up(desk: Desk) -> CodesSetUp | None:
    """Return the data to set up an app; None if no secret waits for its first code."""
    known = await desk.store.read(_find)
    if known is None or known.confirmed_at is not None:
        return None
    uri = (
        _pyotp()
        .TOTP(known.secret)
        .provisioning_uri(name="operator", issuer_name=desk.settings.name.replace(":", " "))
    )
    drawn = importlib.import_module("segno").make(uri, error="m")
    svg = drawn.svg_inline(scale=4, border=4, dark="#000", light="#fff", omitsize=False)
    return CodesSetUp(secret=known.secret, svg=svg)


async def confirm(desk: Desk, actor: Actor, code: str) -> None:
    """Turn codes on with the first code; raises `WrongValue` for a wrong one."""
    known = await desk.store.read(_find)
    if known is None:
        raise ActionRefused("Codes are not set up. Start the setup again.")
    step = _find_step(known.secret, code, desk.now())
    if step is None:
        raise WrongValue(
            "This code is wrong. Check the clock of the phone, and enter the next code."
        )
    action = NewAction(actor=actor, at=desk.now(), action="codes.on", subject=_SUBJECT)
    await desk.records.act(_confirm, step, desk.now(), action=action)


async def switch_off(desk: Desk, actor: Actor) -> None:
    """Turn codes off; raises `ActionRefused` if they are off."""
    action = NewAction(actor=actor, at=desk.now(), action="codes.off", subject=_SUBJECT)
    await desk.records.act(_remove, action=action)


def _find_step(secret: str, code: str, now: float) -> int | None:
    digits = code.replace(" ", "")
    if not _CODE.fullmatch(digits):
        return None
    known = _pyotp().TOTP(secret)
    for around in _STEPS_AROUND:
        at = int(now) + around * STEP_S
        if known.verify(digits, for_time=at):
            return at // STEP_S
    return None


def _pyotp() -> ModuleType:
    return importlib.import_module("pyotp")


# -- the secret's row in the database


def _find(db: Connection) -> OperatorCodes | None:
    row = db.execute("SELECT secret, confirmed_at, last_step FROM operator_codes").fetchone()
    return None if row is None else OperatorCodes(**row)


def _begin(db: Connection, secret: str) -> None:
    _refuse_confirmed(db)
    db.execute("DELETE FROM operator_codes")
    db.execute("INSERT INTO operator_codes (id, secret) VALUES (1, ?)", (secret,))


def _confirm(db: Connection, step: int, now: float) -> None:
    _refuse_confirmed(db)
    db.execute("UPDATE operator_codes SET confirmed_at = ?, last_step = ?", (now, step))


def _take(db: Connection, step: int) -> bool:
    """Use up a time step; False if it or a later one was used before."""
    done = db.execute(
        """UPDATE operator_codes SET last_step = ?
           WHERE confirmed_at IS NOT NULL AND last_step < ?""",
        (step, step),
    )
    return done.rowcount > 0


def _remove(db: Connection) -> None:
    if db.execute("DELETE FROM operator_codes").rowcount == 0:
        raise ActionRefused("Codes are off already.")


def _refuse_confirmed(db: Connection) -> None:
    codes = _find(db)
    if codes is not None and codes.confirmed_at is not None:
        raise ActionRefused("Codes are on already; turn them off first.")
