"""`gateway reviews`."""

import asyncio

import click

from gateway import load_settings, open_store
from gateway_reviews import ratings


@click.command("reviews")
def reviews() -> None:
    """Show how buyers rate each endpoint, and how many purchases it has."""
    purchases, averages = asyncio.run(_read())
    for slug, count in sorted(purchases.items()):
        stars = f"{averages[slug]:.1f}" if slug in averages else "none"
        click.echo(f"{slug:<30} {stars:>4}  {count} purchases")


async def _read() -> tuple[dict[str, int], dict[str, float]]:
    async with open_store(load_settings()) as store:
        return await store.read(ratings.purchases), await store.read(ratings.averages)
