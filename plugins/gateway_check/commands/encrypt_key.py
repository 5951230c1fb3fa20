"""The command `gateway encrypt-key`."""

import os
from pathlib import Path

import click

from gateway.chain import keys
from gateway.cli.terminal import one_sentence
from gateway.settings import is_key


@click.command("encrypt-key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--key",
    prompt="Private key",
    hide_input=True,
    help="The private key. Default: ask for it.",
)
@click.option(
    "--password",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="The keystore's password. Default: ask for it.",
)
@one_sentence
def encrypt_key(*, file: Path, key: str, password: str) -> None:
    """Encrypt a private key into the keystore FILE. Name it in GATEWAY_SETTLEMENT_KEYSTORE."""
    if not is_key(key):
        raise click.BadParameter("a private key has 64 hexadecimal digits (secp256k1)")
    secret = bytes.fromhex(key.removeprefix("0x"))
    _write_keystore(file, keys.encrypt_key(secret, password))
    click.echo(f"{file} contains the key of {keys.address_of(secret)}.")


def _write_keystore(file: Path, content: str) -> None:
    """Write a new private file; raises `click.UsageError`."""
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise click.UsageError(f"{file} already exists. Choose a new file.") from None
    except OSError as error:
        raise click.UsageError(
            f"{file} cannot be written ({error.strerror}). Choose a file in an existing, writable "
            "folder."
        ) from None
    with os.fdopen(opened, "w", encoding="utf-8") as keystore:
        owner = file.absolute().parent.stat()
        # If root writes this file on the gateway's volume, the gateway's user must be able to read
        # it.
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.fchown(keystore.fileno(), owner.st_uid, owner.st_gid)
        keystore.write(content)
