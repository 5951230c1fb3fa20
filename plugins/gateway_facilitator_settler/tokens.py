"""Bearer tokens for the facilitator: none, one from the settings, or one signed per request.

Coinbase's Developer Platform (CDP) wants the last kind: a JWT of two minutes that names the
very request it is for, signed with an ES256 or Ed25519 key.
"""

import base64
import importlib
import secrets
from collections.abc import Callable
from typing import Any

from gateway import Settings, SettingsError
from gateway.settings import variable

_LIFE_S = 120  # what CDP documents
_SEED_BYTES = 32  # of an Ed25519 key; as many of its public key follow
_CURVE = "secp256r1"  # ES256 is ECDSA over this curve and no other

Bearer = Callable[[str, int], str | None]
"""Returns the token for a request such as `POST host/path` at a time, or None for none."""


def bearer_of(settings: Settings) -> Bearer:
    """Return how requests are authorized.

    Raises `SettingsError` for settings that contradict each other, or a key that is none.
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
        return _signed_per_request(key_id, key_secret)
    return _always(token) if token else lambda _request, _now: None


def _always(token: str) -> Bearer:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            f"{variable('facilitator_token')} holds a character that no token has, such as a "
            f"space or a line's end. Example: {variable('facilitator_token')}=fct_0123456789abcdef"
        )
    return lambda _request, _now: token


def _signed_per_request(key_id: str, secret: str) -> Bearer:
    """Sign what CDP documents; `uris` is what its newer SDKs send, `uri` what older ones do."""
    jwt, key, algorithm = _load(secret)

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


def _load(secret: str) -> tuple[Any, Any, str]:
    """Return (PyJWT, private key, algorithm); imported only where such a key is set.

    Raises `SettingsError` for a key that is neither, and where the library is not installed.
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
    except (ValueError, TypeError, unsupported):  # whatever is wrong with it; it may be quoted
        name = variable("facilitator_key_secret")
        raise SettingsError(
            f"{name} is no key that can sign: neither a PEM on curve P-256 nor 64 bytes in Base64 "
            f"(Ed25519). Example: {name}=-----BEGIN EC PRIVATE KEY-----\\n…"
        ) from None


def _ec_key(secret: str) -> Any:
    serialization = importlib.import_module("cryptography.hazmat.primitives.serialization")
    pem = secret.replace("\\n", "\n")  # how many environments carry line ends
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
