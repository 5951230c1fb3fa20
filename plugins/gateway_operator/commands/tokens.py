"""The command `gateway tokens`: tokens of the JSON API."""

import asyncio
import time
from typing import Any

import click

from gateway.cli.terminal import ListGroup, json_option, one_sentence
from gateway.settings import load_settings
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.desk import tokens as service
from gateway_operator.logins import OperatorToken
from gateway_operator.tables import print_rows


@click.group(cls=ListGroup, invoke_without_command=True)
@json_option
@click.pass_context
@one_sentence
def tokens(context: click.Context, *, as_json: bool) -> None:
    """Create, list and revoke tokens of the JSON API.

    A program sends its token with each request to /admin/api/v1/, as Authorization: Bearer TOKEN.
    Without a command, the tokens are listed.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_them, as_json=as_json)


@tokens.command()
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice(["read", "act"]),
    default="read",
    show_default=True,
    help="What the token may do; act includes read.",
)
@click.option(
    "--days",
    type=click.IntRange(1, service.MAX_DAYS),
    default=service.DAYS,
    show_default=True,
    help="Days until it expires.",
)
@one_sentence
def new(*, name: str, scope: str, days: int) -> None:
    """Create a token and print it once. NAME is the program that uses it."""

    async def make() -> service.NewToken:
        async with open_session(load_settings()) as desk:
            return await service.make_token(desk, shell_actor(), name, scope, days=days)

    click.echo(asyncio.run(make()).secret)


@tokens.command("list")
@json_option
@one_sentence
def list_them(*, as_json: bool) -> None:
    """List the tokens. Their secrets are stored only as hashes."""

    async def find() -> list[OperatorToken]:
        async with open_session(load_settings()) as desk:
            return await service.list_tokens(desk)

    now = time.time()
    rows = [_make_row(token, now) for token in asyncio.run(find())]
    if not rows and not as_json:
        click.echo("There are no tokens.")
        return
    print_rows(rows, as_json=as_json)


@tokens.command()
@click.argument("name")
@one_sentence
def revoke(*, name: str) -> None:
    """Revoke the token NAME at once."""

    async def end() -> None:
        async with open_session(load_settings()) as desk:
            await service.revoke_token(desk, shell_actor(), name)

    asyncio.run(end())
    click.echo(f"The token {name} is revoked.")


def _make_row(token: OperatorToken, now: float) -> dict[str, Any]:
    is_valid = token.revoked_at is None and token.expires_at > now
    state = "revoked" if token.revoked_at is not None else "valid" if is_valid else "expired"
    return {
        "name": token.name,
        "scope": token.scope,
        "state": state,
        "until": _day(token.expires_at),
        "used": _day(token.used_at) if token.used_at is not None else "never",
    }


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
