"""`gateway check --live`: one cheap, billed generation of each endpoint with its real adapter.

It saves the shapes of the vendor's responses to a file that an operator may send to the project.
"""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import attrs
import click

from gateway.catalog.catalog import Catalog, Registered
from gateway.contracts import Cancelling, Polling
from gateway.domain import (
    Endpoint,
    GenerationRequest,
    Handle,
    Link,
    Output,
    Result,
)
from gateway.errors import RateLimited, SettingsError, SubmitUncertain, Transient
from gateway.outputs.downloads import Downloader
from gateway.plugins.manager import PluginManager
from gateway.sandbox.pictures import Pictures
from gateway.settings import Settings
from gateway.tasks.delivery import check_result
from gateway.version import VERSION
from gateway_check.live_files import smallest_file
from gateway_vendors.shapes import Shapes, record_shapes

# Harmless prompts, which pass every vendor's content filter.
_QUESTION = "What does the page say?"
_PROMPT = "A small red boat on a calm sea"
_POLL_S = 2.0
_LONGEST_POLL_S = 30.0

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

    def as_dict(self) -> dict[str, Any]:
        """Return the row for the table and `--json`."""
        return {
            "endpoint": self.registered.endpoint.slug,
            "result": "ok" if self.ok else "wrong",
            "what came": self.found,
            "seconds": f"{self.seconds:.1f}",
            "the vendor billed": _dollars(self.cost_micros) if self.is_cost_told else "not told",
            "the table says": _dollars(self.registered.endpoint.cost_micros),
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


@attrs.define
class _LiveJob:
    """A job that is not stored."""

    endpoint: Endpoint
    task_id: str = "gateway-check-live"
    attempt: int = 1

    async def progress(self, fraction: float, note: str = "") -> None:
        """Ignore progress."""

    async def save(self, handle: Handle) -> None:
        """Ignore the handle: an interrupted command polls no more."""


def run_live(settings: Settings, slug: str, evidence: Path, *, is_agreed: bool) -> list[LiveResult]:
    """Show the cost, ask, generate, and write the evidence file; raises `SettingsError`.

    `slug` is the endpoint to try, or empty for all.
    """
    catalog = PluginManager(disabled=settings.plugins_disabled).catalog(settings)
    chosen = _choose(catalog, slug)
    _print_cost(chosen)
    if not is_agreed:
        click.confirm("Generate, at this cost?", abort=True, err=True)
    made = asyncio.run(_make_all(catalog, chosen))
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


def _print_cost(chosen: list[Registered]) -> None:
    costs = [one.endpoint.cost_micros for one in chosen]
    for one, micros in zip(chosen, costs, strict=True):
        endpoint = one.endpoint
        known = _dollars(micros) if micros is not None else _unknown_cost(endpoint)
        click.echo(f"{endpoint.slug}: {endpoint.model or endpoint.slug}, {known}", err=True)
    total = _dollars(sum(micros or 0 for micros in costs))
    more = ", plus unknown costs" if None in costs else ""
    click.echo(f"Your vendors bill about {total} for {len(chosen)} generations{more}.", err=True)


def _unknown_cost(endpoint: Endpoint) -> str:
    return f"cost unknown; sold for {endpoint.price_units / 10**6:g} USDC"


async def _make_all(catalog: Catalog, chosen: list[Registered]) -> list[LiveResult]:
    """Generate one after the other, to stay below vendors' rate limits."""
    pictures, links = Pictures(), Downloader()
    try:
        return [await _make(registered, pictures, links) for registered in chosen]
    finally:
        pictures.close()
        await links.close()
        await catalog.close()


async def _make(registered: Registered, pictures: Pictures, links: Downloader) -> LiveResult:
    """Generate once; any failure becomes the result."""
    endpoint, began = registered.endpoint, time.monotonic()
    request = cheapest_request(endpoint)
    result: Result | None = None
    with record_shapes() as answers:
        try:
            async with asyncio.timeout(endpoint.timeout_s):
                result = await _generate(registered, request)
            found, ok = await _inspect(result, request, endpoint, pictures, links), True
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
    )


def cheapest_request(endpoint: Endpoint) -> GenerationRequest:
    """Return the request with the lowest price at an endpoint."""
    resolutions = endpoint.resolution.values or (None,)
    plain = GenerationRequest(
        prompt=_choose_prompt(endpoint),
        aspect_ratio=endpoint.aspect_ratio.default
        or next(iter(endpoint.aspect_ratio.values), None),
        output_format=endpoint.output_format.default,
        attachment=smallest_file(endpoint) if endpoint.takes_file else None,
        pages=1 if endpoint.counts_pages else None,
    )
    requests = [attrs.evolve(plain, resolution=resolution) for resolution in resolutions]
    return min(requests, key=endpoint.price_of)


def _choose_prompt(endpoint: Endpoint) -> str:
    if endpoint.extracts_data:
        return _QUESTION
    return "" if endpoint.takes_file and endpoint.max_pages else _PROMPT


async def _generate(registered: Registered, request: GenerationRequest) -> Result:
    """Submit once and poll until done. Cancels the job on timeout."""
    upstream, job = registered.upstream, _LiveJob(registered.endpoint)
    await upstream.validate(request, registered.endpoint)
    submitted = await upstream.call(upstream.provider.submit, request, job)
    provider = upstream.provider
    if isinstance(submitted, Result):
        return submitted
    if not isinstance(provider, Polling):
        raise TypeError("The provider returned a handle and has no `poll`.")
    try:
        while True:
            answer = await _poll(registered, submitted, job)
            if isinstance(answer, Result):
                return answer
            await asyncio.sleep(min(answer, _LONGEST_POLL_S))
    except asyncio.CancelledError:
        if isinstance(provider, Cancelling):
            await upstream.call(provider.cancel, submitted)
        raise


async def _poll(registered: Registered, handle: Handle, job: _LiveJob) -> Result | float:
    """Return the result, or the seconds until the next poll."""
    provider = registered.upstream.provider
    assert isinstance(provider, Polling)  # noqa: S101 - checked by `_generate`
    try:
        answer = await registered.upstream.call(provider.poll, handle, job)
    except RateLimited as error:
        return error.retry_after_s
    except (Transient, SubmitUncertain):
        return _POLL_S
    return answer if isinstance(answer, Result) else answer.poll_after_s or _POLL_S


async def _inspect(
    result: Result,
    request: GenerationRequest,
    endpoint: Endpoint,
    pictures: Pictures,
    links: Downloader,
) -> str:
    """Download and check a result as for a sale, and describe it."""
    outputs = [
        Output(data=await links.download(one.url), media_type=one.media_type)
        if isinstance(one, Link)
        else one
        for one in result.outputs
    ]
    whole = attrs.evolve(result, outputs=tuple(outputs))
    whole = await check_result(whole, request, endpoint, pictures)
    found = [_describe(one) for one in whole.outputs if isinstance(one, Output)]
    if whole.text is not None:
        found.append(f"{len(whole.text):,} characters of text")
    if not found:
        raise ValueError("The provider returned nothing.")
    return ", ".join(found)


def _describe(output: Output) -> str:
    size = f" of {output.width} x {output.height}" if output.width else ""
    return f"{output.media_type}{size}, {len(output.data):,} bytes"


def _dollars(micros: int | None) -> str:
    return "not known" if micros is None else f"${micros / 10**6:.4f}"
