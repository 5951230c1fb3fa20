"""What opens the operator's door, as the store keeps it: sessions, tokens, codes and passkeys."""

from typing import Literal

import attrs

Scope = Literal["read", "act"]


@attrs.frozen(kw_only=True)
class OperatorSession:
    """A browser that is logged in. Times are Unix seconds."""

    # SHA-256 of what the browser's cookie holds, in hexadecimal digits.
    id: str
    created_at: float
    seen_at: float

    # Until then the operator gave the password, or a passkey, a moment ago.
    fresh_until: float
    address: str

    # The browser's own words.
    device: str

    @property
    def short(self) -> str:
        """The session's name in the audit log and in lists."""
        return self.id[:8]


@attrs.frozen(kw_only=True)
class OperatorToken:
    """A token of the JSON API, without the token itself. Times are Unix seconds."""

    id: int
    name: str
    scope: Scope
    created_at: float
    expires_at: float
    used_at: float | None = None
    revoked_at: float | None = None


@attrs.frozen(kw_only=True)
class OperatorCodes:
    """The secret of the operator's codes (RFC 6238), and which of them are used up."""

    # In Base32.
    secret: str = attrs.field(repr=False)

    # Unix seconds; None: the secret was shown, and no code of it was given yet.
    confirmed_at: float | None

    # The newest time step whose code was taken.
    last_step: int


@attrs.frozen(kw_only=True)
class OperatorPasskey:
    """A passkey that may log in. Times are Unix seconds."""

    # The credential's id, in Base64 for addresses.
    id: str
    name: str

    # A COSE key.
    public_key: bytes = attrs.field(repr=False)
    sign_count: int
    created_at: float
    used_at: float | None = None
