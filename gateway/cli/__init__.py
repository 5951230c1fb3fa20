"""The command `gateway`: serve, check, demo, and what an operator wants to look up."""

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.backup import back_up, encrypt_key, restore
from gateway.cli.payers import payers
from gateway.cli.plugins import plugins
from gateway.cli.refunds import refunds, transfers
from gateway.cli.tasks import tasks
from gateway.cli.terminal import json_option, one_sentence, print_rows, wide_option
from gateway.slim_imports import hidden
from gateway.version import VERSION

if TYPE_CHECKING:
    from gateway.domain import Endpoint


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="gateway")
def main() -> None:
    """Sell AI generations per request for USDC on Base."""


@main.command()
@one_sentence
def serve() -> None:
    """Serve until SIGTERM; settings come from gateway.toml and GATEWAY_* variables."""
    gc.disable()  # collecting while importing costs 40 ms; the server enables it
    with hidden("rich", "pydantic"):
        from gateway.app import create_app  # noqa: PLC0415
        from gateway.settings import load_settings  # noqa: PLC0415
        from gateway.web.server import serve as serve_forever  # noqa: PLC0415

        settings = load_settings()
    serve_forever(settings, create_app)


@main.command()
@json_option
@wide_option
@one_sentence
def check(*, as_json: bool, wide: bool) -> None:
    """Check settings, chain, wallet, gas, plugins and disk; exit code 1 if any fails."""
    from gateway.cli.check import run_checks  # noqa: PLC0415

    rows = run_checks()
    marks = {True: "ok", False: "wrong"}
    shown = [
        {"check": row.name, "result": marks[row.ok], "what was found": row.found} for row in rows
    ]
    print_rows([row.as_dict() for row in rows] if as_json else shown, as_json=as_json, wide=wide)
    sys.exit(0 if all(row.ok for row in rows) else 1)


@main.command()
@json_option
@wide_option
@one_sentence
def endpoints(*, as_json: bool, wide: bool) -> None:
    """List what is on sale, and what is switched off."""
    from gateway.cli.check import catalog_of_settings  # noqa: PLC0415

    catalog, _ = catalog_of_settings()
    rows = [
        {
            "slug": registered.endpoint.slug,
            "price": f"{registered.endpoint.price_units / 10**6:g}",
            "other prices": _other_prices(registered.endpoint),
            "capability": registered.endpoint.capability,
            "model": registered.endpoint.model,
            "plugin": registered.upstream.plugin,
            "on sale": catalog.is_enabled(registered.endpoint.slug),
        }
        for registered in catalog.everything()
    ]
    print_rows(rows, as_json=as_json, wide=wide, stacked=_stacked)


def _other_prices(endpoint: "Endpoint") -> list[str]:
    """Return what is paid instead, by what is asked for."""
    named = []
    for step in endpoint.price_steps:
        pages = f"{step.min_pages} pages" if step.min_pages is not None else None
        asked = " ".join(text for text in (step.resolution, pages) if text)
        named.append(f"{asked}: {step.price_units / 10**6:g}")
    return named


def _stacked(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for a narrow terminal: what belongs together below each other."""
    return {
        "slug": "\n".join([row["slug"], *([] if row["on sale"] else ["not on sale"])]),
        "price": "\n".join([row["price"], *row["other prices"]]),
        "model, capability, plugin": "\n".join([row["model"], row["capability"], row["plugin"]]),
    }


@main.command("hash-password")
@click.option("--password", prompt=True, hide_input=True, confirmation_prompt=True)
def hash_password(password: str) -> None:
    """Print the argon2 hash of a password, for GATEWAY_ADMIN_PASSWORD_HASH."""
    from gateway.web.admin_password import hash_password as hashed  # noqa: PLC0415

    click.echo(hashed(password))


@main.command()
@click.option("--once", is_flag=True, help="Leave after the two purchases.")
@click.option("--port", default=8402, show_default=True, help="Port of the gateway.")
@click.option("--rpc-port", default=8545, show_default=True, help="Port of the embedded chain.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-output"),
    show_default=True,
    help="Folder for the picture and the Markdown.",
)
@one_sentence
def demo(*, once: bool, port: int, rpc_port: int, output: Path) -> None:
    """Buy a picture and a parsed document with play money on an embedded chain."""
    from gateway.demo.tour.guide import run_demo  # noqa: PLC0415 - other commands start faster

    sys.exit(run_demo(once=once, port=port, rpc_port=rpc_port, output=output))


for _command in (plugins, tasks, refunds, transfers, payers, back_up, restore, encrypt_key):
    main.add_command(_command)
