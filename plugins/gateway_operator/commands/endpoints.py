"""The command `gateway endpoints`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click

from gateway.catalog.catalog import Catalog
from gateway.catalog.pricing import Prices, more_prices
from gateway.catalog.registered import Registered
from gateway.cli.terminal import ListGroup, json_option, one_sentence, wide_option
from gateway.contracts.store import EndpointChange
from gateway.domain import Endpoint, dollars, usdc
from gateway.errors import SettingsError
from gateway.settings import load_settings
from gateway_check.catalog import load_catalog
from gateway_operator.actions import endpoints as actions
from gateway_operator.actions.fallbacks import choose_fallback
from gateway_operator.commands.session import open_session, shell_actor
from gateway_operator.desk.desk import Desk
from gateway_operator.tables import print_rows

_SLUG = click.argument("slug")
_ONLY_SET = (
    "This list ignores vendors that fail now, which are off sale too: see /api/ready of the "
    "running gateway, or the page Endpoints."
)
_REASON = click.option("--reason", required=True, help="The reason, for the audit log.")


@click.group(cls=ListGroup, invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@json_option
@wide_option
@click.pass_context
@one_sentence
def endpoints(context: click.Context, *, as_json: bool, wide: bool) -> None:
    """List, pause and price endpoints.

    A running gateway follows a change within two seconds. Only the running gateway knows which
    vendors fail now: see its /api/ready, or the page Endpoints.
    """
    if context.invoked_subcommand is not None:
        return
    catalog = load_catalog().catalog
    _apply_changes(catalog)
    rows = [_make_row(catalog, registered) for registered in catalog.everything()]
    print_rows(rows, as_json=as_json, wide=wide, stacked=_stack_row)
    if not as_json:
        click.echo(_ONLY_SET, err=True)


def _apply_changes(catalog: Catalog) -> None:
    """Apply operators' changes, if the gateway was ever started."""

    async def apply() -> None:
        async with open_session(load_settings(), catalog=catalog):
            pass

    settings = load_settings()
    if not (settings.data_dir / "gateway.db").exists():
        return
    try:
        asyncio.run(apply())
    except SettingsError as error:
        click.echo(f"gateway: {error} Changes by operators are not shown.", err=True)


def _make_row(catalog: Catalog, registered: Registered) -> dict[str, Any]:
    endpoint, cost = registered.endpoint, registered.endpoint.cost_micros
    return {
        "slug": endpoint.slug,
        "price": f"{endpoint.price_units / 10**6:g}",
        "other prices": _format_price_steps(endpoint),
        "cost": "" if cost is None else f"{cost / 10**6:g}",
        "capability": endpoint.capability,
        "model": endpoint.model,
        "plugin": registered.upstream.plugin,
        "on sale": catalog.is_enabled(endpoint.slug)
        and not registered.is_paused
        and not registered.obstacle,
        "paused": _pause_reason(registered.change),
        "fallback": registered.change.fallback if registered.change is not None else None,
    }


def _pause_reason(change: EndpointChange | None) -> str | None:
    return change.pause_reason if change is not None and change.paused_since is not None else None


def _format_price_steps(endpoint: Endpoint) -> list[str]:
    return [f"{name}: {units / 10**6:g}" for name, units in more_prices(endpoint).items()]


def _stack_row(row: dict[str, Any]) -> dict[str, Any]:
    """Use fewer columns on a narrow terminal."""
    cost = [f"cost {row['cost']}"] if row["cost"] else []
    state = [] if row["on sale"] else ["not on sale"]
    if row["paused"] is not None:
        state = [f"paused: {row['paused']}"]
    if row["fallback"] is not None:
        state.append(f"fallback: {row['fallback']}")
    return {
        "slug": "\n".join([row["slug"], *state]),
        "price": "\n".join([row["price"], *row["other prices"], *cost]),
        "model, capability, plugin": "\n".join([row["model"], row["capability"], row["plugin"]]),
    }


def _act(act: Callable[[Desk], Awaitable[str]]) -> None:
    """Run an action beside the gateway."""
    catalog = load_catalog(needs_page=True).catalog

    async def run() -> str:
        async with open_session(load_settings(), catalog=catalog) as desk:
            return await act(desk)

    click.echo(asyncio.run(run()))


@endpoints.command()
@_SLUG
@_REASON
@one_sentence
def pause(*, slug: str, reason: str) -> None:
    """Stop selling an endpoint. Paid tasks will be finished."""

    async def act(desk: Desk) -> str:
        preview = await actions.preview_pause(desk, slug)
        await actions.pause(desk, shell_actor(), slug, reason=reason)
        return f"{slug} is paused. Paid tasks that are still finished: {preview.unfinished}."

    _act(act)


@endpoints.command()
@_SLUG
@click.option("--reason", default="", help="The reason, for the audit log.")
@one_sentence
def resume(*, slug: str, reason: str) -> None:
    """Sell a paused endpoint again."""

    async def act(desk: Desk) -> str:
        await actions.resume(desk, shell_actor(), slug, reason=reason)
        return f"{slug} is on sale again."

    _act(act)


@endpoints.command()
@_SLUG
@click.argument("usdc_amount", metavar="[USDC]", required=False)
@click.option("--reset", is_flag=True, help="Restore the price of the settings.")
@click.option(
    "--more",
    multiple=True,
    metavar="NAME=USDC",
    help="A price by resolution or pages, such as 2K=0.08 or '6 pages=0.10'. Repeatable.",
)
@_REASON
@one_sentence
def price(
    *, slug: str, usdc_amount: str | None, reset: bool, more: tuple[str, ...], reason: str
) -> None:
    """Change an endpoint's price, to 0.05 for example.

    Prices by resolution or pages that are not given change by the same factor. Buyers who already
    have the old price may pay it for five more minutes.
    """
    units = _read_amount(usdc_amount, usdc, reset=reset)
    more_units = dict(map(_read_more, more))
    if units is None and more_units:
        raise click.UsageError("--more needs an amount, too.")
    chosen = None if units is None else Prices(units, more_units)

    async def act(desk: Desk) -> str:
        preview = await actions.preview_price(desk, slug, chosen)
        await actions.change_price(
            desk,
            shell_actor(),
            slug,
            chosen,
            seen=Prices(preview.old_units, preview.old_more),
            reason=reason,
            is_fresh=True,
        )
        return _describe_price(preview)

    _act(act)


def _describe_price(preview: actions.PricePreview) -> str:
    text = (
        f"{preview.slug} costs {preview.new_units / 10**6:g} USDC "
        f"instead of {preview.old_units / 10**6:g}."
    )
    for name, units in preview.new_more.items():
        text += f" {name}: {units / 10**6:g}."
    if preview.is_below_cost and preview.cost_micros is not None:
        text += f" That is below its cost of {preview.cost_micros / 10**6:g} US dollars."
    return text


def _read_more(text: str) -> tuple[str, int]:
    name, _, amount = text.rpartition("=")
    if not name:
        raise click.UsageError(f"{text!r} is not of the form 2K=0.08.")
    try:
        return name, usdc(amount)
    except ValueError as error:
        raise SettingsError(f"{error}.") from None


@endpoints.command()
@_SLUG
@click.argument("usd_amount", metavar="[USD]", required=False)
@click.option("--reset", is_flag=True, help="Restore the cost of the settings or the adapter.")
@click.option("--reason", default="", help="The reason, for the audit log.")
@one_sentence
def cost(*, slug: str, usd_amount: str | None, reset: bool, reason: str) -> None:
    """Set the cost of one generation, in US dollars.

    It applies if the vendor reports no cost.
    """
    micros = _read_amount(usd_amount, dollars, reset=reset)

    async def act(desk: Desk) -> str:
        changed = await actions.change_cost(
            desk, shell_actor(), slug, micros, reason=reason, is_fresh=True
        )
        micros_now = changed.endpoint.cost_micros
        if micros_now is None:
            return f"The cost of {slug} is not known."
        return f"One generation of {slug} costs you {micros_now / 10**6:g} US dollars."

    _act(act)


@endpoints.command()
@_SLUG
@click.argument("other", metavar="[OTHER]", required=False)
@click.option("--reset", is_flag=True, help="Remove the fallback.")
@click.option("--reason", default="", help="The reason, for the audit log.")
@one_sentence
def fallback(*, slug: str, other: str | None, reset: bool, reason: str) -> None:
    """Choose the endpoint that makes new orders while the vendor fails.

    It must take every request, promise the same result, and cost no more than the price.
    """
    if (other is None) != reset:
        raise click.UsageError("Give the slug of the fallback, or --reset.")

    async def act(desk: Desk) -> str:
        warning = await choose_fallback(
            desk, shell_actor(), slug, other, reason=reason, is_fresh=True
        )
        if other is None:
            return f"{slug} has no fallback."
        return " ".join(filter(None, (f"While {slug} fails, {other} makes it.", warning)))

    _act(act)


def _read_amount(amount: str | None, read: Callable[[str], int], *, reset: bool) -> int | None:
    """Return an amount in units of 10⁻⁶, or None for `--reset`."""
    if (amount is None) != reset:
        raise click.UsageError("Give an amount such as 0.05, or --reset.")
    if amount is None:
        return None
    try:
        return read(amount)
    except ValueError as error:
        raise SettingsError(f"{error}.") from None
