"""Browsers that have logged in, known for a month by a signed cookie.

Attempts to log in are limited over all addresses together, and strangers can use that limit up.
An attempt from a known browser is counted by itself instead, so strangers cannot lock it out.
"""

import hashlib
import secrets

from itsdangerous import BadSignature, TimestampSigner
from quart import Response, current_app, request

from gateway.web.services import services

_COOKIE = "gateway_device"
_KNOWN_S = 30 * 86_400


def known_device(password: str) -> str | None:
    """Return the name of the browser that asks; None where it never logged in.

    `password` is the fingerprint of today's: a new password forgets every browser.
    """
    try:
        signed = _signer().unsign(request.cookies.get(_COOKIE, ""), max_age=_KNOWN_S).decode()
    except (BadSignature, UnicodeDecodeError):
        return None
    name, _, known_by = signed.partition(".")
    return name if known_by == password else None


def remember_device(response: Response, password: str) -> None:
    """Make the browser that asks a known one, for a month from now."""
    name = known_device(password) or secrets.token_hex(8)
    response.set_cookie(
        _COOKIE,
        _signer().sign(f"{name}.{password}").decode(),
        max_age=_KNOWN_S,
        path="/admin",
        secure=services().settings.is_https,
        httponly=True,
        samesite="Strict",
    )


def _signer() -> TimestampSigner:
    return TimestampSigner(
        str(current_app.secret_key), salt="admin-device", digest_method=hashlib.sha256
    )
