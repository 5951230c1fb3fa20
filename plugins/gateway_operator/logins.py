"""Stored credentials of operators: sessions, tokens, codes and passkeys."""

from typing import Literal

import attrs

Scope = Literal["read", "act"]


@attrs.frozen(kw_only=True)
class OperatorSession:
    """A logged-in browser. Times are Unix seconds."""

    # SHA-256 of the cookie's value, in hexadecimal.
    id: str
    created_at: float
    seen_at: float

    # Until then the session counts as freshly authenticated.
    fresh_until: float
    address: str

    # The User-Agent header.
    device: str

    @property
    def short(self) -> str:
        """The session's name in the audit log and in lists."""
        return self.id[:8]


@attrs.frozen(kw_only=True)
class OperatorToken:
    """A token of the JSON API, without its secret. Times are Unix seconds."""

    id: int
    name: str
    scope: Scope
    created_at: float
    expires_at: float
    used_at: float | None = None
    revoked_at: float | None = None


@attrs.frozen(kw_only=True)
class OperatorCodes:
    """The TOTP secret (RFC 6238) and its state."""

    # In Base32.
    secret: str = attrs.field(repr=False)

    # Unix seconds; None: not confirmed by a first code yet.
    confirmed_at: float | None

    # The newest accepted time step. A code counts once.
    last_step: int


@attrs.frozen(kw_only=True)
class OperatorPasskey:
    """A registered passkey. Times are Unix seconds."""

    # The credential's id in URL-safe Base64.
    id: str
    name: str

    # A COSE key.
    public_key: bytes = attrs.field(repr=False)
    sign_count: int
    created_at: float
    used_at: float | None = None
