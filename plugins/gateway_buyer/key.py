"""Reads the buyer's private key: from the keyring, a file, a variable or a prompt."""

import contextlib
import importlib
import json
import os
import re
import stat
import sys
from pathlib import Path

import click

from gateway.chain.keys import decrypt_key
from gateway.settings import is_key
from gateway_demo.tour.place import PLAY_KEY

DEMO = "demo"
_VARIABLE = "env:"
_KEYRING = re.compile(r"keyring(?::([A-Za-z0-9._-]{1,64}))?")
# The names under which the keyring has the key.
_SERVICE, _ACCOUNT = "generation-gateway", "wallet"
# A keystore has 600 bytes.
_MAX_FILE_BYTES = 64_000
_OTHERS = 0o077
_WAYS = "--key FILE names a file with it, or a keystore; --key env:NAME names a variable with it"


def check_source(source: str) -> None:
    """Raise `click.UsageError` if the private key is in the command itself."""
    if is_key(source.strip()):
        raise click.UsageError(
            "Do not write a private key into a command: other users of this machine can read it, "
            f"and the shell keeps it. {_WAYS}."
        )


def check_encrypted(source: str) -> None:
    """Raise `click.UsageError` if `--key` names a key that other programs can read."""
    is_plain = source.startswith(_VARIABLE)
    path = Path(source)
    if source != DEMO and not _KEYRING.fullmatch(source):
        # `read_key` reports a file that cannot be read.
        with contextlib.suppress(OSError), path.open("rb") as file:
            is_plain = not file.read(_MAX_FILE_BYTES).lstrip().startswith(b"{")
    if is_plain:
        raise click.UsageError(
            "A wallet for agents needs an encrypted key: store it by `keyring set "
            f"{_SERVICE} {_ACCOUNT}` and name --key keyring, or encrypt it by `gateway "
            "encrypt-key FILE` and name --key FILE."
        )


def read_key(source: str | None, password: str | None, *, is_local: bool) -> bytes:
    """Return a private key, 32 bytes.

    `source` and `password` are the values of `--key` and `--password`. `is_local`: the gateway is
    on this machine, so the demo's key is allowed. Raises `click.ClickException`.
    """
    if source is None:
        return _decode(_ask("The private key is missing", "Private key"), "What you typed")
    if source == DEMO:
        if not is_local:
            raise click.UsageError("--key demo is for a gateway on this machine only.")
        return _decode(PLAY_KEY, source)
    if (named := _KEYRING.fullmatch(source)) is not None:
        return _read_keyring(named[1] or _ACCOUNT)
    if source.startswith(_VARIABLE):
        name = source.removeprefix(_VARIABLE)
        return _decode(os.environ.get(name, ""), f"The variable {name}")
    return _read_file(Path(source), password)


def _read_keyring(account: str) -> bytes:
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        raise click.UsageError(
            "--key keyring needs the extra: pip install 'generation-gateway[wallet]'."
        ) from None
    try:
        text = keyring.get_password(_SERVICE, account)
    except keyring.errors.KeyringError as error:
        raise click.UsageError(
            f"The system's keyring cannot be read ({type(error).__name__}). Without one, `gateway "
            "encrypt-key FILE` writes a keystore for --key FILE."
        ) from None
    if text is None:
        raise click.UsageError(
            f"The keyring has no key. Store it by `keyring set {_SERVICE} {account}`."
        )
    return _decode(text, "The keyring")


def _read_file(path: Path, password: str | None) -> bytes:
    try:
        with path.open("rb") as file:
            mode, content = os.fstat(file.fileno()).st_mode, file.read(_MAX_FILE_BYTES)
        text = content.decode()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise click.UsageError(f"--key names {path}, which cannot be read ({why}).") from None
    if not text.lstrip().startswith("{"):
        if stat.S_IMODE(mode) & _OTHERS:
            click.echo(f"{path} can be read by other users: chmod 600 {path}", err=True)
        return _decode(text.strip(), str(path))
    return _open_keystore(path, text, password)


def _open_keystore(path: Path, text: str, password: str | None) -> bytes:
    try:
        content = dict(json.loads(text))
    except (ValueError, TypeError):
        raise click.UsageError(f"{path} is neither a keystore nor a private key.") from None
    try:
        return decrypt_key(content, _read_password(path, password))
    except ValueError:
        raise click.UsageError(f"The keystore {path} does not open with this password.") from None


def _read_password(path: Path, source: str | None) -> str:
    if source is None:
        way = "--password env:NAME names the variable with it"
        return _ask(f"The password of {path} is missing", f"Password of {path}", way)
    name = source.removeprefix(_VARIABLE)
    if name == source or name not in os.environ:
        raise click.UsageError("--password is env:NAME, with a variable that is set.")
    return os.environ[name]


def _ask(missing: str, prompt: str, ways: str = _WAYS) -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(f"{missing}: {ways}.")
    answer: str = click.prompt(prompt, hide_input=True, err=True)
    return answer


def _decode(text: str, where: str) -> bytes:
    if not is_key(text.strip()):
        raise click.UsageError(f"{where} holds no private key: 64 hexadecimal digits.")
    return bytes.fromhex(text.strip().removeprefix("0x"))
