"""`gateway check --live`: one cheap, billed generation of each endpoint with its real adapter.

It saves the shapes of the vendor's responses to a file that an operator may send to the project.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from gateway.catalog.catalog import Catalog
from gateway.catalog.registered import Registered
from gateway.domain import Endpoint, GenerationRequest, Output, Result
from gateway.errors import SettingsError
from gateway.plugins.manager import PluginManager
from gateway.settings import Settings
from gateway.version import VERSION
from gateway_check.generating import Generator, describe_cost, write_bill
from gateway_check.live_files import smallest_file
from gateway_vendors.shapes import Shapes, record_shapes

live_option = click.option(
    "--live",
    metavar="[SLUG]",
    is_flag=False,
    flag_value="",
    help="Only generate once per endpoint on sale, or with SLUG. Your vendors bill for this.",
)
yes_option = click.option("--yes", "is_agreed", is_flag=True, help="Do not ask before --live.")
evidence_option = click.option(
    "--evidence",
    type=click.Path(dir_okay=False, path_type=Path),
    default="vendor-answers.json",
    show_default=True,
    help="File for the shapes of the vendors' responses to --live: no content, no keys.",
)


@attrs.frozen(kw_only=True)
class LiveResult:
    """The outcome of one generation."""

    registered: Registered
    ok: bool
    found: str
    seconds: float
    cost_micros: int | None = None
    is_cost_told: bool = False
    answers: Shapes = attrs.field(factory=list)
    outputs: Sequence[Output] = attrs.field(default=(), repr=False)
    text: str | None = attrs.field(default=None, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the row for the table and `--json`."""
        return {
            "endpoint": self.registered.endpoint.slug,
            "result": "ok" if self.ok else "wrong",
            "what came": self.found,
            "seconds": f"{self.seconds:.1f}",
            "the vendor billed": describe_cost(self.cost_micros)
            if self.is_cost_told
            else "not told",
            "the table says": describe_cost(self.registered.endpoint.cost_micros),
        }

    def as_evidence(self) -> dict[str, Any]:
        """Return the entry for the evidence file."""
        endpoint = self.registered.endpoint
        return {
            "endpoint": endpoint.slug,
            "model": endpoint.model,
            "provider": self.registered.upstream.provider.name,
            "ok": self.ok,
            "seconds": round(self.seconds, 1),
            "cost_micros": self.cost_micros if self.is_cost_told else None,
            "answers": self.answers,
        }


def run_live(settings: Settings, slug: str, evidence: Path, *, is_agreed: bool) -> list[LiveResult]:
    """Show the cost, ask, generate, and write the evidence file; raises `SettingsError`.

    `slug` is the endpoint to try, or empty for all.
    """
    catalog = PluginManager(disabled=settings.plugins_disabled).catalog(settings)
    chosen = _choose(catalog, slug)
    costs = [(one.endpoint, one.endpoint.cost_micros) for one in chosen]
    click.echo(write_bill(costs, "generation"), err=True)
    if not is_agreed:
        click.confirm("Generate, at this cost?", abort=True, err=True)
    made = asyncio.run(_make_all(settings, catalog, chosen))
    report = {
        "gateway": VERSION,
        "at": time.strftime("%Y-%m-%d", time.gmtime()),
        "generations": [one.as_evidence() for one in made],
    }
    try:
        evidence.write_text(json.dumps(report, indent=1) + "\n")
    except OSError as error:
        click.echo(f"gateway: {evidence} cannot be written: {error.strerror}.", err=True)
    else:
        click.echo(f"The shapes of the responses are in {evidence}.", err=True)
    return made


def _choose(catalog: Catalog, slug: str) -> list[Registered]:
    known = [endpoint.slug for endpoint in catalog]
    if slug and slug not in known:
        names = ", ".join(known) or "nothing"
        raise SettingsError(f"{slug} is not on sale. On sale: {names}.")
    if not known:
        raise SettingsError("Nothing is on sale; `gateway endpoints` lists what could be.")
    return [catalog[name] for name in known if not slug or name == slug]


async def _make_all(
    settings: Settings, catalog: Catalog, chosen: list[Registered]
) -> list[LiveResult]:
    """Generate one after the other, to stay below vendors' rate limits."""
    try:
        async with Generator.of(settings, "gateway-check-live") as generator:
            return [await make_one(registered, generator) for registered in chosen]
    finally:
        await catalog.close()


async def make_one(registered: Registered, generator: Generator) -> LiveResult:
    """Generate once, at the lowest price; any failure becomes the result."""
    endpoint, began = registered.endpoint, time.monotonic()
    result: Result | None = None
    outputs: Sequence[Output] = ()
    text = None
    with record_shapes() as answers:
        try:
            request = cheapest_request(endpoint)
            result = await generator.generate(registered, request)
            outputs, text = await generator.fetch(result, request, endpoint)
            found, ok = _describe(outputs, text), True
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            message = registered.upstream.error_text(error)
            found, ok = f"{type(error).__name__}: {message}".removesuffix(": "), False
    return LiveResult(
        registered=registered,
        ok=ok,
        found=found,
        seconds=time.monotonic() - began,
        cost_micros=result.cost_micros if result is not None else None,
        is_cost_told=result is not None and result.cost_micros is not None and result.is_cost_told,
        answers=answers,
        outputs=outputs,
        text=text,
    )


def cheapest_request(endpoint: Endpoint) -> GenerationRequest:
    """Return the request with the lowest price at an endpoint."""
    resolutions = endpoint.resolution.values or (None,)
    plain = GenerationRequest(
        prompt=endpoint.declaration.prompt.cheapest,
        aspect_ratio=endpoint.aspect_ratio.default
        or next(iter(endpoint.aspect_ratio.values), None),
        output_format=endpoint.output_format.default,
        attachment=smallest_file(endpoint) if endpoint.takes_file else None,
        pages=1 if endpoint.counts_pages else None,
    )
    requests = [attrs.evolve(plain, resolution=resolution) for resolution in resolutions]
    return min(requests, key=endpoint.price_of)


def _describe(outputs: Sequence[Output], text: str | None) -> str:
    found = [_describe_output(one) for one in outputs]
    if text is not None:
        found.append(f"{len(text):,} characters of text")
    return ", ".join(found)


def _describe_output(output: Output) -> str:
    size = f" of {output.width} x {output.height}" if output.width else ""
    return f"{output.media_type}{size}, {len(output.data):,} bytes"
