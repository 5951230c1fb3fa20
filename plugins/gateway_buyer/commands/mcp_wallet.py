"""The command `gateway mcp-wallet`; the server itself is in `gateway_buyer.wallet`."""

import asyncio
import importlib.util
from pathlib import Path

import click

from gateway.chain.keys import address_of
from gateway_buyer.client import check_url, is_loopback
from gateway_buyer.commands.buy import echo, read_amount, read_source
from gateway_buyer.key import DEMO, check_encrypted, read_key
from gateway_buyer.purchase import Buyer
from gateway_buyer.records import Records, default_folder, state_folder
from gateway_buyer.wallet.allowance import Allowance
from gateway_buyer.wallet.wallet import HINTS, TIMING, Limits, Wallet


def _read_urls(_: click.Context, __: click.Parameter, urls: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(check_url(url) for url in urls)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _default_folder() -> Path:
    return Path.home() / "generation-gateway"


@click.command(
    "mcp-wallet",
    epilog="A payment counts for --per-day from before it is signed, also if its outcome is "
    "unknown.",
)
@click.option(
    "--key",
    required=True,
    callback=read_source,
    help="keyring for the system's keyring, a keystore file, or demo for the play money of "
    "`gateway demo`.",
)
@click.option("--password", help="env:NAME: the variable with the keystore's password.")
@click.option(
    "--url",
    "urls",
    multiple=True,
    callback=_read_urls,
    help="Buy only at this gateway. May be repeated.  [default: any gateway]",
)
@click.option(
    "--max",
    "max_units",
    default="0.10",
    show_default=True,
    callback=read_amount,
    help="The highest price of one purchase, in USDC.",
)
@click.option(
    "--per-day",
    "per_day_units",
    default="1.00",
    show_default=True,
    callback=read_amount,
    help="The most to spend in 24 hours, in USDC.",
)
@click.option(
    "--ask-above",
    "ask_above_units",
    default="0.05",
    show_default=True,
    callback=read_amount,
    help="Ask the person before paying more than this, in USDC.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=_default_folder,
    help="Save results here; only files in it can be sent.  [default: ~/generation-gateway]",
)
def mcp_wallet(
    *,
    key: str,
    password: str | None,
    urls: tuple[str, ...],
    max_units: int,
    per_day_units: int,
    ask_above_units: int,
    folder: Path,
) -> None:
    """Run a local MCP server by which an agent buys within limits.

    Claude, Cursor and Codex start it over stdio; `gateway mcp-config --url` prints how. It buys at
    any x402 gateway of this kind.
    """
    if not all(map(importlib.util.find_spec, ("mcp", "mcp_types"))):
        raise click.UsageError("Run pip install 'generation-gateway[wallet]' first.")
    check_encrypted(key)
    is_local = bool(urls) and all(map(is_loopback, urls))
    if key == DEMO and not is_local:
        raise click.UsageError("--key demo needs --url with the address of `gateway demo`.")
    secret = read_key(key, password, is_local=is_local)
    _make_folder(folder)
    spending = state_folder() / "wallets" / f"{address_of(secret)}.sqlite3"
    wallet = Wallet(
        secret=secret,
        limits=Limits(per_purchase_units=max_units, ask_above_units=ask_above_units),
        allowance=Allowance(file=spending, per_day_units=per_day_units),
        buyer=Buyer(records=Records(default_folder()), report=echo, timing=TIMING, hints=HINTS),
        folder=folder.absolute(),
        urls=urls,
    )
    from gateway_buyer.wallet.server import serve  # noqa: PLC0415 - imports the SDK

    echo(f"The wallet {wallet.address} serves MCP over stdin and stdout.")
    asyncio.run(serve(wallet))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(
            f"{folder} cannot be made ({error.strerror}). Name another one by --folder."
        ) from None
