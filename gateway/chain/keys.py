"""Private keys: plain in a setting, or in an encrypted keystore file (Web3 Secret Storage)."""

import json
from pathlib import Path

from coincurve import PrivateKey
from eth_hash.auto import keccak

from gateway.errors import SettingsError
from gateway.settings import Settings, variable
from gateway.slim_imports import import_ethereum

# Of PBKDF2-HMAC-SHA-256. The default of the other method, scrypt, takes 256 MB of a small machine.
_ROUNDS = 600_000


def address_of(secret: bytes) -> str:
    """Return the lower-case address of a private key of 32 bytes."""
    public = PrivateKey(secret).public_key.format(compressed=False)
    return "0x" + keccak(public[1:])[12:].hex()


def load_key(settings: Settings, name: str) -> bytes | None:
    """Return the private key of `settlement` or `refund`, 32 bytes; None where none is set.

    Raises `SettingsError` for a keystore that is missing, damaged or locked by another password,
    and for the key of the wallet itself.
    """
    secret = _read_key(settings, name)
    if secret is not None:
        _refuse_key_of_wallet(settings, name, secret)
    return secret


def check_plain_keys(settings: Settings) -> None:
    """Raise `SettingsError` where a plain key is the wallet's, even if nothing uses that key."""
    for name in ("settlement", "refund"):
        secret = _read_plain_key(settings, name)
        if secret is not None:
            _refuse_key_of_wallet(settings, name, secret)


def _refuse_key_of_wallet(settings: Settings, name: str, secret: bytes) -> None:
    if address_of(secret) == settings.wallet_key:
        setting = variable(
            f"{name}_key" if getattr(settings, f"{name}_key") else f"{name}_keystore"
        )
        raise SettingsError(
            f"{setting} is the private key of GATEWAY_WALLET, and the gateway must not hold that "
            f"key: make another key for {name}s, or receive payments at another address."
        )


def _read_plain_key(settings: Settings, name: str) -> bytes | None:
    plain: str = getattr(settings, f"{name}_key")
    return bytes.fromhex(plain.removeprefix("0x")) if plain else None


def _read_key(settings: Settings, name: str) -> bytes | None:
    plain = _read_plain_key(settings, name)
    keystore: Path | None = getattr(settings, f"{name}_keystore")
    if keystore is None:
        return plain
    if plain:
        raise SettingsError(
            f"{variable(f'{name}_key')} and {variable(f'{name}_keystore')} are both set. "
            "Remove one of them."
        )
    return _unlock_keystore(keystore, getattr(settings, f"{name}_keystore_password"), name)


def _unlock_keystore(keystore: Path, password: str, name: str) -> bytes:
    try:
        content = dict(json.loads(keystore.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(
            f"{variable(f'{name}_keystore')} names {keystore}, which is no keystore that can be "
            f"read ({type(error).__name__}). `gateway encrypt-key` writes one."
        ) from None
    # This takes 0.1 s, so a process without a keystore does not import it.
    eth_keyfile = import_ethereum("eth_keyfile")
    try:
        return bytes(eth_keyfile.decode_keyfile_json(content, password.encode()))
    except (ValueError, KeyError, TypeError, NotImplementedError):
        raise SettingsError(
            f"The keystore {keystore} does not open with {variable(f'{name}_keystore_password')}. "
            "Set the password that it was encrypted with."
        ) from None


def encrypt_key(secret: bytes, password: str) -> str:
    """Return the JSON of a keystore file."""
    eth_keyfile = import_ethereum("eth_keyfile")
    content = eth_keyfile.create_keyfile_json(
        secret, password.encode(), kdf="pbkdf2", iterations=_ROUNDS
    )
    return json.dumps(content, indent=2)
