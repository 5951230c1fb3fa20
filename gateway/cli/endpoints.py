"""The command `gateway endpoints`."""

from typing import Any

import click

from gateway.cli.catalog import catalog_of_settings
from gateway.cli.tables import print_rows
from gateway.cli.terminal import json_option, one_sentence, wide_option
from gateway.domain import Endpoint


@click.command()
@json_option
@wide_option
@one_sentence
def endpoints(*, as_json: bool, wide: bool) -> None:
    """List what is on sale, and what is switched off."""
    catalog, _ = catalog_of_settings()
    rows = [
        {
            "slug": registered.endpoint.slug,
            "price": f"{registered.endpoint.price_units / 10**6:g}",
            "other prices": _format_price_steps(registered.endpoint),
            "capability": registered.endpoint.capability,
            "model": registered.endpoint.model,
            "plugin": registered.upstream.plugin,
            "on sale": catalog.is_enabled(registered.endpoint.slug),
        }
        for registered in catalog.everything()
    ]
    print_rows(rows, as_json=as_json, wide=wide, stacked=_stack_row)


def _format_price_steps(endpoint: Endpoint) -> list[str]:
    """Return each price in USDC that another resolution or number of pages has, after its name."""
    formatted = []
    for step in endpoint.price_steps:
        pages = f"{step.min_pages} pages" if step.min_pages is not None else None
        condition = " ".join(text for text in (step.resolution, pages) if text)
        formatted.append(f"{condition}: {step.price_units / 10**6:g}")
    return formatted


def _stack_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with fewer columns for a narrow terminal: related values below each other."""
    return {
        "slug": "\n".join([row["slug"], *([] if row["on sale"] else ["not on sale"])]),
        "price": "\n".join([row["price"], *row["other prices"]]),
        "model, capability, plugin": "\n".join([row["model"], row["capability"], row["plugin"]]),
    }
