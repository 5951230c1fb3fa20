"""Checks passwords and codes, and counts attempts. Neither is ever logged."""

import hashlib
import math

from gateway.errors import InvalidCredentials, TooManyRequests
from gateway.settings import parse_limit
from gateway.web.front.current import address, current_gateway
from gateway_operator.desk import codes, sessions
from gateway_operator.pages.devices import known_device
from gateway_operator.settings import operator_settings_of
from gateway_operator.state import operator

MAX_PASSWORD_CHARS = 1024


async def password_fingerprint() -> str:
    """Return a digest of the password's hash; with a new password, sessions end."""
    stored = await operator().password.hash()
    return hashlib.sha256(stored.encode()).hexdigest()[:16]


async def count_attempt() -> str | None:
    """Count a login attempt; return the browser's name if it is known.

    It counts for the address and in total; from a known browser, only for the browser. Raises
    `TooManyRequests` past a limit.
    """
    gateway = current_gateway()
    device = known_device(await password_fingerprint())
    chosen = operator_settings_of(gateway.settings)
    limit, window_s = parse_limit(chosen.limit_login)
    total, total_window_s = parse_limit(chosen.limit_login_total)
    wait_s = await gateway.store.count_attempt(
        address() if device is None else f"device {device}",
        limit=limit,
        window_s=window_s,
        total=(total if device is None else None, total_window_s),
        now=gateway.now(),
    )
    if wait_s > 0:
        raise TooManyRequests(max(1, math.ceil(wait_s)))
    return device


async def check_password(password: str, code: str, *, is_known: bool) -> str:
    """Return how the operator authenticated, for the audit log.

    Raises `InvalidCredentials`, without distinguishing password and code: otherwise they could be
    guessed one after the other.
    """
    needs_code = await codes.are_on(operator().desk)
    # Only the right password uses up a code, so an attacker cannot.
    is_right = await operator().password.matches(password, is_known=is_known)
    if is_right and needs_code:
        is_right = await codes.take_code(operator().desk, code)
    if not is_right:
        await sessions.note_refused(operator().desk, address())
        raise InvalidCredentials(
            "The password or the code is wrong." if needs_code else "The password is wrong."
        )
    return "password and code" if needs_code else "password"
