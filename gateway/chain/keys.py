"""Private keys: plain in a setting, or in an encrypted keystore file (Web3 Secret Storage)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from btclib_secp256k1.keys import pubkey_from_prvkey
from eth_hash.auto import keccak

from gateway.chain.known_keys import is_known_key, refuse_known_wallet
from gateway.concurrency.late_imports import import_ethereum
from gateway.contracts import Chain
from gateway.errors import SettingsError
from gateway.settings import Settings, is_chain_local, parse_keys, variable

# PBKDF2-HMAC-SHA-256. The alternative, scrypt, needs 256 MB by default.
_ROUNDS = 600_000
# Base and Base Sepolia have more.
_MOST_PLAY_BLOCKS = 10_000_000


def address_of(secret: bytes) -> str:
    """Return the lower-case address of a 32-byte private key."""
    public = pubkey_from_prvkey(secret, compressed=False)
    return "0x" + keccak(public[1:])[12:].hex()


def load_key(settings: Settings, name: str) -> bytes | None:
    """Return the private key `settlement` or `refund`, 32 bytes; None if it is not set.

    Raises `SettingsError` for a missing or damaged keystore, a wrong password, and the wallet's own
    key.
    """
    secret = _read_key(settings, name)
    if secret is not None:
        is_plain = bool(getattr(settings, f"{name}_key"))
        _refuse_unfit_key(settings, f"{name}_key" if is_plain else f"{name}_keystore", secret)
    return secret


def load_settlement_keys(settings: Settings) -> tuple[bytes, ...]:
    """Return the settlement keys, 32 bytes each, in the order of the setting.

    Raises `SettingsError` as `load_key` does, for a duplicate key, and if both a list and a single
    key are set.
    """
    several = _read_key_list(settings)
    single = load_key(settings, "settlement")
    if not several:
        return () if single is None else (single,)
    if single is not None:
        raise SettingsError(
            "GATEWAY_SETTLEMENT_KEYS and another settlement key are both set. Remove one of them."
        )
    if len(set(several)) < len(several):
        raise SettingsError("GATEWAY_SETTLEMENT_KEYS lists one key twice. Remove one of them.")
    for secret in several:
        _refuse_unfit_key(settings, "settlement_keys", secret)
    return several


def check_plain_keys(settings: Settings, *, is_play: bool | None = None) -> None:
    """Raise `SettingsError` for a plain key that is unfit, even if nothing uses that key.

    `is_play` is as for `refuse_known_wallet`.
    """
    for secret in _read_key_list(settings):
        _refuse_unfit_key(settings, "settlement_keys", secret, is_play=is_play)
    for name in ("settlement", "refund"):
        plain = _read_plain_key(settings, name)
        if plain is not None:
            _refuse_unfit_key(settings, f"{name}_key", plain, is_play=is_play)


async def known_problem(settings: Settings, chain: Chain) -> str | None:
    """Return the sentence about a known wallet or plain key on a real chain's node here, or None.

    A development chain is young. Raises `ChainUnavailable`.
    """
    if not is_chain_local(settings):
        # Refused at the start.
        return None
    try:
        refuse_known_wallet(settings, is_play=False)
        check_plain_keys(settings, is_play=False)
    except SettingsError as error:
        is_old = (await chain.head()).number > _MOST_PLAY_BLOCKS
        return str(error) if is_old else None
    return None


def _refuse_unfit_key(
    settings: Settings, setting: str, secret: bytes, *, is_play: bool | None = None
) -> None:
    """Raise `SettingsError` for the wallet's key, and on a real chain for a known key."""
    is_play = is_chain_local(settings) if is_play is None else is_play
    if not is_play and is_known_key(secret, address_of(secret)):
        raise SettingsError(
            f"{variable(setting)} is a private key from examples, which everybody knows: what it "
            "holds would be taken within seconds. Make a key of your own: openssl rand -hex 32"
        )
    if address_of(secret) == settings.wallet_key:
        use = setting.partition("_")[0]
        raise SettingsError(
            f"{variable(setting)} is the private key of GATEWAY_WALLET, and the gateway must not "
            f"hold that key: make another key for {use}s, or receive payments at another address."
        )


def _read_key_list(settings: Settings) -> tuple[bytes, ...]:
    keys = parse_keys(settings.settlement_keys)
    return tuple(bytes.fromhex(key.removeprefix("0x")) for key in keys)


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
    try:
        return decrypt_key(content, password)
    except ValueError:
        raise SettingsError(
            f"The keystore {keystore} does not open with {variable(f'{name}_keystore_password')}. "
            "Set the password that it was encrypted with."
        ) from None


def decrypt_key(content: Mapping[str, Any], password: str) -> bytes:
    """Return the private key in a keystore's JSON, 32 bytes.

    Raises `ValueError` for a damaged keystore or a wrong password.
    """
    # Imported only if needed: it takes 0.1 s.
    eth_keyfile = import_ethereum("eth_keyfile")
    try:
        return bytes(eth_keyfile.decode_keyfile_json(content, password.encode()))
    except (KeyError, TypeError, NotImplementedError) as error:
        raise ValueError("This is no keystore of a known kind.") from error


def encrypt_key(secret: bytes, password: str) -> str:
    """Return the JSON of a keystore file."""
    eth_keyfile = import_ethereum("eth_keyfile")
    content = eth_keyfile.create_keyfile_json(
        secret, password.encode(), kdf="pbkdf2", iterations=_ROUNDS
    )
    return json.dumps(content, indent=2)
