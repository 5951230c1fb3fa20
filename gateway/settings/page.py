"""Settings that the operator's page may set, and what it has set.

The page writes to the database, which backups copy. So each value is sealed with a key that is
derived from `GATEWAY_SETTINGS_SECRET`, which is not in the database.
"""

import base64
import binascii
import secrets
from collections.abc import Mapping
from typing import Any, cast

import attrs
import typed_settings as ts

from gateway.settings.sections import secret

# The fields of `PageSettings` that no operator sets by name.
FILLED = ("sources", "page_sealed", "page_unread")
_VERSION = "v1"
_NONCE_BYTES = 12
_TAG_BYTES = 16
_KEY_BYTES = 32
_MIN_SECRET_CHARS = 32
# `openssl rand -hex 32` has nearly all of its 16 digits; a typed word repeated has few.
_MIN_DISTINCT = 8


@attrs.frozen(kw_only=True)
class PageSettings:
    """The settings by which the page sets others, and the state of those."""

    settings_secret: ts.SecretStr = secret(
        "Random secret of 32 characters or more that seals what you set on the page Settings. Keep "
        "a copy outside of backups: with another one those values are not read. Nodes share it.",
        example="$(openssl rand -hex 32)",
    )
    # By name: the file, or `environment`, or `the command`. Missing names have defaults, or are of
    # the page.
    sources: Mapping[str, str] = attrs.field(factory=dict)
    # Values of the page as they were in the database when this process read them, by name.
    page_sealed: Mapping[str, str] = attrs.field(factory=dict)
    # Why some of them have no effect, by name.
    page_unread: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def page_names(self) -> frozenset[str]:
        """The names of the settings whose value is the page's."""
        return frozenset(self.page_sealed) - frozenset(self.page_unread) - frozenset(self.sources)


def of_command(overrides: Mapping[str, Any]) -> dict[str, str]:
    """Return the sources of values that a command passes."""
    return dict.fromkeys(overrides, "the command")


def is_strong(text: str) -> bool:
    """Whether this is empty, or long enough and not one character repeated."""
    return not text or (len(text) >= _MIN_SECRET_CHARS and len(set(text)) >= _MIN_DISTINCT)


def seal(secret_text: str, name: str, value: str) -> str:
    """Encrypt the value of a setting; the name is authenticated, too."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    body, tag = _cipher(secret_text, name, nonce).encrypt_and_digest(value.encode())
    return f"{_VERSION}.{base64.urlsafe_b64encode(nonce + tag + body).decode()}"


def unseal(secret_text: str, name: str, sealed: str) -> str:
    """Return the value that `seal` encrypted; raises `ValueError` for another secret or name."""
    version, _, text = sealed.partition(".")
    try:
        data = base64.b64decode(text, altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("damaged") from error
    if version != _VERSION or len(data) < _NONCE_BYTES + _TAG_BYTES:
        raise ValueError("damaged")
    nonce, tag, body = (
        data[:_NONCE_BYTES],
        data[_NONCE_BYTES : _NONCE_BYTES + _TAG_BYTES],
        data[_NONCE_BYTES + _TAG_BYTES :],
    )
    plain: bytes = _cipher(secret_text, name, nonce).decrypt_and_verify(body, tag)
    return plain.decode()


def _cipher(secret_text: str, name: str, nonce: bytes) -> Any:
    """Return AES-256-GCM for one value."""
    # Most gateways set nothing on the page. pycryptodome comes with eth-hash.
    from Crypto.Cipher import AES  # noqa: PLC0415
    from Crypto.Hash import SHA256  # noqa: PLC0415
    from Crypto.Protocol.KDF import HKDF  # noqa: PLC0415

    about = b"generation-gateway settings"
    key = cast(bytes, HKDF(secret_text.encode(), _KEY_BYTES, b"", SHA256, context=about))
    cipher = AES.new(key, AES.MODE_GCM, nonce=nonce, mac_len=_TAG_BYTES)
    cipher.update(name.encode())
    return cipher
