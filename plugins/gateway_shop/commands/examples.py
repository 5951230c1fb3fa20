"""The command `gateway examples`: one real result of each offer, for the pages."""

import asyncio
import hashlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import click

from gateway.catalog.catalog import Catalog
from gateway.catalog.registered import Registered
from gateway.cli.terminal import json_option, one_sentence, wide_option
from gateway.domain import GenerationRequest, Output
from gateway.errors import SettingsError
from gateway.sandbox.pictures import shrink_picture
from gateway.settings import load_settings
from gateway.store import SqlStore
from gateway_check.catalog import load_catalog
from gateway_check.generating import Generator, describe_cost, write_bill
from gateway_operator.commands.session import open_session
from gateway_operator.tables import print_rows
from gateway_shop import examples as kept
from gateway_shop.examples import Example
from gateway_shop.orders import order
from gateway_shop.samples import is_built

_MAX_TEXT_CHARS = 4_000


@attrs.frozen(kw_only=True)
class _Order:
    """One example to make."""

    registered: Registered
    request: GenerationRequest

    @property
    def cost_micros(self) -> int | None:
        """The expected bill in 10⁻⁶ US dollars, if known."""
        return self.registered.endpoint.cost_of(self.request)


@click.command()
@click.argument("slugs", nargs=-1)
@click.option("--prompt", default="", help="Another prompt; for the SLUGS only.")
@click.option("--again", is_flag=True, help="Replace the examples that exist already.")
@click.option("--remove", is_flag=True, help="Delete the examples of the SLUGS. Costs nothing.")
@click.option("--yes", "is_agreed", is_flag=True, help="Do not ask before.")
@json_option
@wide_option
@one_sentence
def examples(
    *,
    slugs: tuple[str, ...],
    prompt: str,
    again: bool,
    remove: bool,
    is_agreed: bool,
    as_json: bool,
    wide: bool,
) -> None:
    """Make an example result of each offer for the shop.

    Each offer on sale without an example generates once, or each of the SLUGS. Your vendors bill
    for it, so the command shows the cost and asks. A running gateway shows the results within half
    a minute.
    """
    if (prompt or remove) and not slugs:
        raise click.UsageError("Name the endpoints, such as openai-image.")
    catalog = load_catalog().catalog
    if remove:
        rows = asyncio.run(_remove_all(slugs))
    else:
        rows = asyncio.run(_run(catalog, slugs, prompt, again=again, is_agreed=is_agreed))
    print_rows(rows, as_json=as_json, wide=wide)
    sys.exit(0 if all(row["result"] != "wrong" for row in rows) else 1)


async def _remove_all(slugs: Sequence[str]) -> list[dict[str, Any]]:
    async with open_session(load_settings()) as desk:
        found = {slug: await desk.store.write(kept.remove, slug) for slug in slugs}
    words = {True: "removed", False: "had no example"}
    return [{"endpoint": slug, "result": words[was]} for slug, was in found.items()]


async def _run(
    catalog: Catalog, slugs: Sequence[str], prompt: str, *, again: bool, is_agreed: bool
) -> list[dict[str, Any]]:
    settings = load_settings()
    try:
        async with open_session(settings, catalog=catalog) as desk:
            found = await desk.store.read(kept.find_all)
            orders = _choose(catalog, slugs, prompt, {} if again else found)
            bill = [(one.registered.endpoint, one.cost_micros) for one in orders]
            click.echo(write_bill(bill, "example"), err=True)
            if not is_agreed:
                click.confirm("Generate, at this cost?", abort=True, err=True)
            async with Generator.of(settings, "gateway-examples") as generator:
                # One after the other, to stay below vendors' rate limits. Each is kept at once.
                return [await _make(one, generator, desk.store) for one in orders]
    finally:
        await catalog.close()


def _choose(
    catalog: Catalog, slugs: Sequence[str], prompt: str, found: Mapping[str, Example]
) -> list[_Order]:
    """Return the examples to make; raises `SettingsError` if there is nothing to make."""
    known = [endpoint.slug for endpoint in catalog]
    if unknown := [slug for slug in slugs if slug not in known]:
        names = ", ".join(known) or "nothing"
        raise SettingsError(f"{', '.join(unknown)}: not on sale. On sale: {names}.")
    lacking = [slug for slug in known if not _is_made(catalog[slug], found)]
    if not (chosen := list(slugs) or lacking):
        raise SettingsError(
            "Every offer on sale has an example. Name the endpoints that need another one."
        )
    turns = {slug: known.index(slug) for slug in chosen}
    return [
        _Order(registered=catalog[slug], request=order(catalog[slug].endpoint, turns[slug], prompt))
        for slug in chosen
    ]


def _is_made(registered: Registered, found: Mapping[str, Example]) -> bool:
    example = found.get(registered.endpoint.slug)
    if example is None:
        return is_built(registered.endpoint.slug)
    return example.model == registered.endpoint.model


async def _make(one: _Order, generator: Generator, store: SqlStore) -> dict[str, Any]:
    """Generate and keep one example; any failure becomes the row."""
    endpoint, upstream = one.registered.endpoint, one.registered.upstream
    micros = None
    try:
        result = await generator.generate(one.registered, one.request)
        micros = result.cost_micros if result.is_cost_told else None
        made = await generator.fetch(result, one.request, endpoint)
        details, ok = await _keep(one, *made, store), True
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        details = f"{type(error).__name__}: {upstream.error_text(error)}".removesuffix(": ")
        ok = False
    return {
        "endpoint": endpoint.slug,
        "result": "made" if ok else "wrong",
        "details": details,
        "cost": f"{describe_cost(micros)}, as billed"
        if micros is not None
        else f"{describe_cost(one.cost_micros)}, as expected",
    }


async def _keep(one: _Order, outputs: Sequence[Output], text: str | None, store: SqlStore) -> str:
    """Store the first picture, or the text; return its description."""
    endpoint = one.registered.endpoint
    picture = next((each for each in outputs if each.width), None)
    pictures: kept.Pictures = {}
    if endpoint.sells_pictures and picture is not None:
        small = await shrink_picture(picture.data, list(kept.SIDES.values()))
        pictures = dict(zip(kept.SIDES, small, strict=True))
    elif text is None:
        raise ValueError("The result is neither a picture nor a text, and a page shows only these.")
    example = Example(
        slug=endpoint.slug,
        model=endpoint.model,
        prompt=one.request.prompt,
        made_at=time.time(),
        text=None if pictures else (text or "")[:_MAX_TEXT_CHARS],
        width=picture.width if pictures and picture else None,
        height=picture.height if pictures and picture else None,
        digest=hashlib.sha256(pictures["large"]).hexdigest()[:16] if pictures else None,
    )
    await store.write(kept.save, example, pictures)
    if pictures and picture:
        return f"a picture of {picture.width} x {picture.height}, “{one.request.prompt}”"
    return f"{len(text or ''):,} characters of text"
