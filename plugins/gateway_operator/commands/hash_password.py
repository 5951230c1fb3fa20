"""The command `gateway hash-password`."""

import click

from gateway_operator.admin_password import hash_password as hash_with_argon2


@click.command("hash-password")
@click.option(
    "--password",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="The password. By default the command asks for it.",
)
def hash_password(password: str) -> None:
    """Print the argon2 hash of a password.

    Set it as GATEWAY_ADMIN_PASSWORD_HASH.
    """
    click.echo(hash_with_argon2(password))
