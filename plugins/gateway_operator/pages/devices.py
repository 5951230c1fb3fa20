"""Known browsers: recognized for a month by a signed cookie after a login.

Login attempts are limited over all addresses together, and anyone can use that limit up. A known
browser has a limit of its own, so that a flood cannot lock the operator out.
"""

import hashlib

from itsdangerous import BadSignature, TimestampSigner
from quart import Response, current_app, request

from gateway.web.front.current import current_gateway

_COOKIE = "gateway_device"
_KNOWN_S = 30 * 86_400


def known_device(password: str) -> str | None:
    """Return the name of the request's browser; None if it never logged in.

    `password` is the current password's fingerprint: a new password forgets every browser.
    """
    try:
        signed = _cookie_signer().unsign(request.cookies.get(_COOKIE, ""), max_age=_KNOWN_S)
        name, _, known_by = signed.decode().partition(".")
    except (BadSignature, UnicodeDecodeError):
        return None
    return name if known_by == password else None


def remember_device(response: Response, password: str, session_id: str) -> None:
    """Make the request's browser known for a month.

    A new browser is named after its session. With a random name, the holder of a stolen session
    could get a new name, and so a new limit, for each password attempt.
    """
    name = known_device(password) or session_id[:16]
    response.set_cookie(
        _COOKIE,
        _cookie_signer().sign(f"{name}.{password}").decode(),
        max_age=_KNOWN_S,
        path="/admin",
        secure=current_gateway().settings.is_https,
        httponly=True,
        samesite="Strict",
    )


def _cookie_signer() -> TimestampSigner:
    return TimestampSigner(
        str(current_app.secret_key), salt="admin-device", digest_method=hashlib.sha256
    )
