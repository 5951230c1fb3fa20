"""Bearer tokens for the facilitator: none, a fixed one from the settings, or one per request.

Coinbase's Developer Platform (CDP) requires the last kind: a JWT that is valid for two minutes,
names its request, and is signed with an ES256 or Ed25519 key.
"""

import base64
import importlib
import secrets
from collections.abc import Callable
from typing import Any

from gateway import Settings, SettingsError
from gateway.settings import variable

# As CDP documents.
_LIFE_S = 120

# An Ed25519 key is a 32-byte seed followed by a 32-byte public key.
_SEED_BYTES = 32

# ES256 is ECDSA on this curve only.
_CURVE = "secp256r1"

Bearer = Callable[[str, int], str | None]
"""Returns the token for a request such as `POST host/path` at a time (Unix seconds), or None."""


def bearer_of(settings: Settings) -> Bearer:
    """Return the function that makes each request's token.

    Raises `SettingsError` if settings contradict each other, or if a key cannot sign.
    """
    token = str(settings.facilitator_token)
    key_id, key_secret = settings.facilitator_key_id, str(settings.facilitator_key_secret)
    if token and (key_id or key_secret):
        raise SettingsError(
            f"{variable('facilitator_token')} and {variable('facilitator_key_id')} or "
            f"{variable('facilitator_key_secret')} are both set. Remove one of them."
        )
    if bool(key_id) != bool(key_secret):
        missing = "facilitator_key_secret" if key_id else "facilitator_key_id"
        raise SettingsError(
            f"{variable(missing)} is not set, but its other half is. Example: "
            f"{variable('facilitator_key_id')}=organizations/<id>/apiKeys/<id> and "
            f"{variable('facilitator_key_secret')}=<the PEM or Base64 that came with it>"
        )
    if key_id:
        return _sign_each(key_id, key_secret)
    return _repeat(token) if token else lambda _request, _now: None


def _repeat(token: str) -> Bearer:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            f"{variable('facilitator_token')} holds a character that no token has, such as a "
            f"space or a line's end. Example: {variable('facilitator_token')}=fct_0123456789abcdef"
        )
    return lambda _request, _now: token


def _sign_each(key_id: str, secret: str) -> Bearer:
    """Sign the claims that CDP documents. Newer SDKs send `uris`, older ones `uri`."""
    jwt, key, algorithm = _load_key(secret)

    def sign(request: str, now: int) -> str:
        claims = {
            "iss": "cdp",
            "sub": key_id,
            "iat": now,
            "nbf": now,
            "exp": now + _LIFE_S,
            "uri": request,
            "uris": [request],
        }
        headers = {"kid": key_id, "nonce": secrets.token_hex(16)}
        token: str = jwt.encode(claims, key, algorithm=algorithm, headers=headers)
        return token

    return sign


def _load_key(secret: str) -> tuple[Any, Any, str]:
    """Return (PyJWT, private key, algorithm). Imports the libraries only if a key is set.

    Raises `SettingsError` if the key is of neither kind, or if a library is not installed.
    """
    try:
        jwt = importlib.import_module("jwt")
        unsupported = importlib.import_module("cryptography.exceptions").UnsupportedAlgorithm
    except ImportError:
        raise SettingsError(
            f"{variable('facilitator_key_id')} needs PyJWT and cryptography. "
            'Example: pip install "generation-gateway[facilitator]"'
        ) from None
    try:
        if "-----BEGIN" in secret:
            return jwt, _ec_key(secret), "ES256"
        return jwt, _ed25519_key(secret), "EdDSA"
    except (ValueError, TypeError, unsupported):
        # Not the library's own message, which may quote the key.
        name = variable("facilitator_key_secret")
        raise SettingsError(
            f"{name} cannot sign: it is neither a PEM on curve P-256 nor 64 bytes in Base64 "
            f"(Ed25519). Example: {name}=-----BEGIN EC PRIVATE KEY-----\\n…"
        ) from None


def _ec_key(secret: str) -> Any:
    serialization = importlib.import_module("cryptography.hazmat.primitives.serialization")
    # In many environments line ends are written as backslash and n.
    pem = secret.replace("\\n", "\n")
    key = serialization.load_pem_private_key(pem.encode(), password=None)
    if getattr(getattr(key, "curve", None), "name", None) != _CURVE:
        raise ValueError("another curve, or none")
    return key


def _ed25519_key(secret: str) -> Any:
    ed25519 = importlib.import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    raw = base64.b64decode(secret, validate=True)
    key = ed25519.Ed25519PrivateKey.from_private_bytes(raw[:_SEED_BYTES])
    if key.public_key().public_bytes_raw() != raw[_SEED_BYTES:]:
        raise ValueError("the halves are not of one key")
    return key
