"""The commands `gateway backup`, `gateway restore` and `gateway encrypt-key`."""

import os
import time
from pathlib import Path

import click

from gateway.cli.terminal import one_sentence

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("backup")
@click.argument("file", type=_FILE)
@one_sentence
def back_up(*, file: Path) -> None:
    """Write a consistent copy of the database to FILE; the gateway may run."""
    from gateway.settings import load_settings  # noqa: PLC0415
    from gateway.store import backup  # noqa: PLC0415 - other commands start faster

    size = backup.back_up(load_settings(), file)
    click.echo(f"{file}: {size:,} bytes.")


@click.command()
@click.argument("file", type=_FILE)
@one_sentence
def restore(*, file: Path) -> None:
    """Put a copy back in the database's place; transfers made until now pay no more."""
    from gateway.settings import load_settings  # noqa: PLC0415
    from gateway.store import backup  # noqa: PLC0415

    old = backup.restore(load_settings(), file, now=time.time())
    if old is not None:
        click.echo(f"The database until now lies at {old}.")
    click.echo(
        "Restored. Transfers that are on-chain already will not pay for anything; "
        "`gateway transfers unclaimed --hours 0` lists those the copy does not know."
    )


@click.command("encrypt-key")
@click.argument("file", type=_FILE)
@click.option("--key", prompt="Private key", hide_input=True)
@click.option("--password", prompt=True, hide_input=True, confirmation_prompt=True)
@one_sentence
def encrypt_key(*, file: Path, key: str, password: str) -> None:
    """Write a private key into an encrypted keystore FILE, for GATEWAY_SETTLEMENT_KEYSTORE."""
    from gateway.chain import keys  # noqa: PLC0415
    from gateway.settings import is_key  # noqa: PLC0415

    if not is_key(key):
        raise click.BadParameter("a private key is 64 hexadecimal digits, of secp256k1")
    secret = bytes.fromhex(key.removeprefix("0x"))
    content = keys.encrypt_key(secret, password)
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise click.UsageError(f"{file} exists already. Name a new file.") from None
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written ({error.strerror}).") from None
    with os.fdopen(opened, "w", encoding="utf-8") as keystore:
        owner = file.absolute().parent.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            # On the gateway's volume the file is for the gateway's user to read.
            os.fchown(keystore.fileno(), owner.st_uid, owner.st_gid)
        keystore.write(content)
    click.echo(f"{file} holds the key of {keys.address_of(secret)}.")
