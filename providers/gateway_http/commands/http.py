"""The command `gateway http check`: one request of the operator's, and the value of each path."""

import asyncio
import sys
import time
from pathlib import Path

import attrs
import click

from gateway import (
    Answer,
    Attachment,
    Endpoint,
    GenerationRequest,
    Handle,
    Link,
    Output,
    Pending,
    Result,
    SettingsError,
    load_settings,
)
from gateway.errors import ProviderError
from gateway_http import HttpSettings
from gateway_http.api import HttpApi, HttpJobs, make_provider
from gateway_http.declarations import Declaration
from gateway_http.files import list_files, read_file
from gateway_http.offers import make_endpoint

_MAX_SHOWN_CHARS = 200
_ERROR = 400
_POLL_S = 1.0


@click.group()
def http() -> None:
    """Try the HTTP APIs that are declared in files.

    GATEWAY_HTTP_ENDPOINTS names their folder.
    """


@http.command()
@click.argument("name")
@click.option("--prompt", default="A small red boat on a calm sea", show_default=True)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file to send, if the endpoint takes files.",
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Save the result here."
)
def check(*, name: str, prompt: str, path: Path | None, out: Path | None) -> None:
    """Send one request of NAME.toml, and show what each path found.

    The server makes the result, and bills it if it bills anything.
    """
    try:
        about = _read(name)
        request = _make_request(about, prompt, path)
        result = asyncio.run(_try(name, about, request))
    except (SettingsError, ProviderError) as error:
        kind = "" if isinstance(error, SettingsError) else f"{type(error).__name__}: "
        click.echo(f"gateway: {kind}{_one_line(str(error))}", err=True)
        sys.exit(1)
    data = _show_result(result)
    if out is not None and data is not None:
        out.write_bytes(data)


def _read(name: str) -> Declaration:
    folder = load_settings(needs_wallet=False).section("http", HttpSettings).endpoints
    if not folder:
        raise SettingsError(
            "GATEWAY_HTTP_ENDPOINTS is not set: name the folder of your files. Example: "
            "GATEWAY_HTTP_ENDPOINTS=endpoints"
        )
    # Another wrong file does not matter here.
    found = {path.stem: path for path in list_files(folder)}
    if name not in found:
        known = ", ".join(found) or "none"
        raise SettingsError(f"{folder} has no file {name}.toml. It has: {known}.")
    return read_file(found[name])


def _make_request(about: Declaration, prompt: str, path: Path | None) -> GenerationRequest:
    if about.files and path is None:
        raise SettingsError(f"This endpoint takes a file: --file example{about.files[0]}")
    if about.refused and any(text.lower() in prompt.lower() for text in about.refused):
        raise SettingsError("The prompt contains a text that is refused; choose another --prompt.")
    return GenerationRequest(
        prompt=prompt,
        aspect_ratio=about.ratios[0],
        resolution=next(iter(about.sizes), None),
        attachment=None if path is None else Attachment(name=path.name, data=path.read_bytes()),
    )


@attrs.define
class _Trial:
    """The attempt that the provider works for."""

    endpoint: Endpoint
    task_id: str = "check"
    attempt: int = 1

    async def progress(self, fraction: float, note: str = "") -> None:
        """Do nothing: the command shows the value that the path found."""

    async def save(self, handle: Handle) -> None:
        """Do nothing: a check does not survive its process."""


async def _try(name: str, about: Declaration, request: GenerationRequest) -> Result:
    """Send the request, and poll its job to the end; raises `ProviderError`."""
    provider = make_provider(name, about)
    provider.note = _show
    try:
        job = _Trial(make_endpoint(name, about))
    except ValueError as error:
        raise SettingsError(f"{name}.toml is not right: {error}.") from None
    click.echo(f"{about.request.method} {about.request.url}")
    try:
        made = await provider.submit(request, job)
        return await _wait(provider, made, job) if isinstance(made, Handle) else made
    finally:
        await provider.close()


async def _wait(provider: HttpApi, handle: Handle, job: _Trial) -> Result:
    if not isinstance(provider, HttpJobs):
        raise TypeError("only jobs have handles")
    deadline = time.monotonic() + job.endpoint.timeout_s
    while True:
        answer = await provider.poll(handle, job)
        if not isinstance(answer, Pending):
            return answer
        if time.monotonic() > deadline:
            raise SettingsError(f"The job was not done within timeout_s ({job.endpoint.timeout_s})")
        await asyncio.sleep(_POLL_S)


def _show(name: str, value: object) -> None:
    """Print an answer of the server, or the value at a path."""
    if not isinstance(value, Answer):
        click.echo(f"  {name}: {_describe(value)}")
        return
    kind = value.headers.get("content-type", "no type")
    click.echo(f"  status {value.status}, {kind}, {len(value.body):,} bytes")
    if value.status >= _ERROR:
        click.echo(f"  {_one_line(value.body[:1000].decode(errors='replace'))}")


def _describe(value: object) -> str:
    if value is None:
        return "nothing there"
    if isinstance(value, str):
        more = f" ({len(value):,} characters)" if len(value) > _MAX_SHOWN_CHARS else ""
        return f'"{_one_line(value)}"{more}'
    return _one_line(str(value))


def _one_line(text: str) -> str:
    """Return the beginning of a text, without characters that could control the terminal."""
    return "".join(char if char.isprintable() else " " for char in text[:_MAX_SHOWN_CHARS])


def _show_result(result: Result) -> bytes | None:
    """Print what a buyer would get; return its bytes, unless it is a link."""
    if result.text is not None:
        click.echo(f"Result: {result.text_media_type}, {len(result.text):,} characters")
        return result.text.encode()
    (output,) = result.outputs
    if isinstance(output, Link):
        click.echo(f"Result: {output.media_type} at a link, which each sale downloads")
        return None
    if not isinstance(output, Output):
        raise TypeError("a result has an output or a link")
    click.echo(f"Result: {output.media_type}, {len(output.data):,} bytes")
    return output.data
