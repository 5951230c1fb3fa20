"""Passkeys (WebAuthn): login without a password. Needs the extra `passkeys`."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import importlib
import importlib.util
import json
import secrets
from typing import Any
from urllib.parse import urlsplit

import attrs

from gateway.errors import ActionRefused, WrongValue
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.logins import OperatorPasskey
from gateway_operator.sql import passkeys

HOW_TO_INSTALL = "pip install 'generation-gateway[passkeys]'"
# Seconds that a challenge is valid.
ASKED_S = 300
_MAC_BYTES = 16
_TIME_BYTES = 8
_RANDOM_BYTES = 16
_MAX_NAME_CHARS = 40
# An authenticator keeps one passkey per user; the operator is one user.
_USER = hashlib.sha256(b"operator").digest()
# ES256, EdDSA and RS256 in the COSE registry.
_ALGORITHMS = (-7, -8, -257)


def are_installed() -> bool:
    """Whether the extra is installed, without importing it."""
    return importlib.util.find_spec("webauthn") is not None


# -- challenges: random and signed, so that unauthenticated requests store nothing


def make_challenge(key: str, purpose: str, now: float) -> bytes:
    """Return a challenge with its time; `purpose` limits the use of its response."""
    head = int(now * 1000).to_bytes(_TIME_BYTES, "big") + secrets.token_bytes(_RANDOM_BYTES)
    return head + _sign(key, purpose, head)


def _asked_at(key: str, purpose: str, challenge: bytes) -> float | None:
    """Return when the gateway made this challenge for this purpose, or None."""
    head, mac = challenge[:-_MAC_BYTES], challenge[-_MAC_BYTES:]
    if len(head) != _TIME_BYTES + _RANDOM_BYTES:
        return None
    if not hmac.compare_digest(mac, _sign(key, purpose, head)):
        return None
    return int.from_bytes(head[:_TIME_BYTES], "big") / 1000


def _sign(key: str, purpose: str, head: bytes) -> bytes:
    text = b"passkey " + purpose.encode() + b"\0" + head
    return hmac.digest(key.encode(), text, "sha256")[:_MAC_BYTES]


# -- options for the browser


@attrs.frozen(kw_only=True)
class Asking:
    """A challenge's purpose, and the key that signs it."""

    key: str = attrs.field(repr=False)

    # `login`, or `new` or `fresh` with the session's id.
    purpose: str


def login_options(desk: Desk, asking: Asking) -> dict[str, Any]:
    """Return the options of `navigator.credentials.get`. Public, so it lists no passkeys."""
    return {
        "challenge": _encode(make_challenge(asking.key, asking.purpose, desk.now())),
        "rpId": _host(desk),
        "userVerification": "required",
        "timeout": ASKED_S * 1000,
    }


async def new_options(desk: Desk, asking: Asking) -> dict[str, Any]:
    """Return the options of `navigator.credentials.create`."""
    known = await list_passkeys(desk)
    return {
        "challenge": _encode(make_challenge(asking.key, asking.purpose, desk.now())),
        "rp": {"id": _host(desk), "name": desk.settings.name},
        "user": {"id": _encode(_USER), "name": "operator", "displayName": "Operator"},
        "pubKeyCredParams": [{"type": "public-key", "alg": number} for number in _ALGORITHMS],
        "authenticatorSelection": {"residentKey": "required", "userVerification": "required"},
        "excludeCredentials": [{"type": "public-key", "id": passkey.id} for passkey in known],
        "attestation": "none",
        "timeout": ASKED_S * 1000,
    }


# -- responses of the browser


async def list_passkeys(desk: Desk) -> list[OperatorPasskey]:
    """Return all passkeys, the oldest first."""
    return await desk.store.read(passkeys.list_all)


async def add_passkey(
    desk: Desk, actor: Actor, name: str, answer: dict[str, Any], asking: Asking
) -> OperatorPasskey:
    """Store a passkey that a browser has made; raises `WrongValue` or `ActionRefused`."""
    shown = " ".join(name.split())[:_MAX_NAME_CHARS]
    if not shown or not shown.isprintable():
        raise WrongValue("Give the passkey a name, such as the device it is on.")
    if not are_installed():
        raise ActionRefused(f"Passkeys are not installed: {HOW_TO_INSTALL}")
    challenge, _ = _check_challenge(desk, answer, asking)
    made = await _verify(desk, "verify_registration_response", answer, challenge)
    passkey = OperatorPasskey(
        id=_encode(made.credential_id),
        name=shown,
        public_key=made.credential_public_key,
        sign_count=made.sign_count,
        created_at=desk.now(),
    )
    action = NewAction(actor=actor, at=desk.now(), action="passkey.new", subject=f"passkey {shown}")
    await desk.records.act(passkeys.insert, passkey, action=action)
    return passkey


async def take_answer(desk: Desk, answer: dict[str, Any], asking: Asking) -> OperatorPasskey:
    """Return the passkey that signed the challenge; a signature counts once.

    Nothing is imported for an unknown passkey. Raises `WrongValue`.
    """
    given = answer.get("id")
    passkey = await desk.store.read(passkeys.find, given) if _is_id(given) else None
    if passkey is None or not are_installed():
        raise WrongValue("This passkey is not known here.")
    challenge, asked_at = _check_challenge(desk, answer, asking)
    verified = await _verify(
        desk,
        "verify_authentication_response",
        answer,
        challenge,
        credential_public_key=passkey.public_key,
        credential_current_sign_count=passkey.sign_count,
    )
    if not await desk.store.write(
        passkeys.take, passkey.id, verified.new_sign_count, asked_at, desk.now()
    ):
        raise WrongValue("This passkey response was used already; try again.")
    return passkey


async def remove_passkey(desk: Desk, actor: Actor, passkey_id: str) -> None:
    """Delete a passkey; raises `ActionRefused` if it does not exist."""
    found = await desk.store.read(passkeys.find, passkey_id)
    name = found.name if found is not None else passkey_id[:_MAX_NAME_CHARS]
    action = NewAction(
        actor=actor, at=desk.now(), action="passkey.remove", subject=f"passkey {name}"
    )
    await desk.records.act(passkeys.remove, passkey_id, action=action)


def _check_challenge(desk: Desk, answer: dict[str, Any], asking: Asking) -> tuple[bytes, float]:
    """Return the signed challenge and its time; raises `WrongValue`."""
    try:
        signed = json.loads(_decode(answer["response"]["clientDataJSON"]))
        challenge = _decode(signed["challenge"])
    except (KeyError, TypeError, ValueError, RecursionError, binascii.Error):
        raise WrongValue("This is not a passkey's response.") from None
    asked_at = _asked_at(asking.key, asking.purpose, challenge)
    if asked_at is None or not 0 <= desk.now() - asked_at <= ASKED_S:
        raise WrongValue("The passkey's response came too late; try again.")
    return challenge, asked_at


async def _verify(
    desk: Desk, name: str, answer: dict[str, Any], challenge: bytes, **known: Any
) -> Any:
    """Import and call a function of webauthn in a thread; raises `WrongValue`."""
    arguments = {
        "credential": answer,
        "expected_challenge": challenge,
        "expected_rp_id": _host(desk),
        "expected_origin": desk.settings.base_url,
        "require_user_verification": True,
        **known,
    }
    return await asyncio.to_thread(_call_webauthn, name, arguments)


def _call_webauthn(name: str, arguments: dict[str, Any]) -> Any:
    webauthn = importlib.import_module("webauthn")
    known_errors = importlib.import_module("webauthn.helpers.exceptions").WebAuthnException
    try:
        return getattr(webauthn, name)(**arguments)
    except (known_errors, ValueError, TypeError, KeyError) as error:
        # webauthn's error quotes the response, which is untrusted.
        raise WrongValue("The passkey's response is invalid.") from error


def _host(desk: Desk) -> str:
    return urlsplit(desk.settings.base_url).hostname or ""


def _is_id(given: object) -> bool:
    return isinstance(given, str) and 0 < len(given) <= 1400 and given.isascii()  # noqa: PLR2004 - 1,023 bytes in Base64


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
