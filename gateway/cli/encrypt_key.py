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
    help="The private key; without this option the command asks for it.",
)
@click.option(
    "--password",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="The keystore's password; without this option the command asks for it.",
)
@one_sentence
def encrypt_key(*, file: Path, key: str, password: str) -> None:
    """Write a private key into an encrypted keystore FILE. GATEWAY_SETTLEMENT_KEYSTORE names it."""
    if not is_key(key):
        raise click.BadParameter("a private key is 64 hexadecimal digits, of secp256k1")
    secret = bytes.fromhex(key.removeprefix("0x"))
    _write_keystore(file, keys.encrypt_key(secret, password))
    click.echo(f"{file} holds the key of {keys.address_of(secret)}.")


def _write_keystore(file: Path, content: str) -> None:
    """Write a new file that only its owner can read; raises `click.UsageError`."""
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise click.UsageError(f"{file} exists already. Name a new file.") from None
    except OSError as error:
        raise click.UsageError(
            f"{file} cannot be written ({error.strerror}). Name a file in a folder that exists and "
            "where you may write."
        ) from None
    with os.fdopen(opened, "w", encoding="utf-8") as keystore:
        owner = file.absolute().parent.stat()
        # Root writes this file on the gateway's volume, where the gateway's user must read it.
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.fchown(keystore.fileno(), owner.st_uid, owner.st_gid)
        keystore.write(content)
