"""The command `gateway codes`: a way to log in without the phone."""

import asyncio

import click

from gateway.cli.terminal import one_sentence
from gateway.settings import load_settings
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.desk.codes import switch_off


@click.group()
def codes() -> None:
    """Turn off two-factor login.

    It is turned on at /admin/access, with an app on your phone.
    """


@codes.command()
@one_sentence
def off() -> None:
    """Turn off two-factor login, for example after losing the phone.

    This is recorded in the audit log.
    """

    async def switch() -> None:
        async with open_session(load_settings()) as desk:
            await switch_off(desk, shell_actor())

    asyncio.run(switch())
    click.echo(
        "Codes are off: the login needs only the password. Set codes up again at /admin/access."
    )
