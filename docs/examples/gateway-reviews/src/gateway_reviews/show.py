"""`gateway reviews`."""

import asyncio

import click

from gateway import load_settings, open_store
from gateway_reviews import ratings


@click.command("reviews")
def reviews() -> None:
    """Show how buyers rate each endpoint."""
    for slug, stars in sorted(asyncio.run(_read()).items()):
        click.echo(f"{slug:<30} {stars:.1f}")


async def _read() -> dict[str, float]:
    async with open_store(load_settings()) as store:
        return await store.read(ratings.averages)
