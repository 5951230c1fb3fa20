"""The command `gateway codes`: the way back in for an operator without the phone."""

import asyncio

import click

from gateway.cli.terminal import one_sentence
from gateway.settings import load_settings
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.desk.codes import switch_off


@click.group()
def codes() -> None:
    """Switch off the codes of the admin login.

    They are switched on at /admin/access, by an app on your phone.
    """


@codes.command()
@one_sentence
def off() -> None:
    """Let the password be enough, such as after the phone was lost. It is in the audit log."""

    async def switch() -> None:
        async with open_session(load_settings()) as desk:
            await switch_off(desk, shell_actor())

    asyncio.run(switch())
    click.echo("Codes are off: the login asks for the password only. Set them up anew there.")
