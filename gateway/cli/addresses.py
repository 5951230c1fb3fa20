"""The addresses that `gateway serve` prints for a person at a terminal."""

import sys

import click

from gateway.running.gateway import Gateway
from gateway.telemetry.logs import is_terminal
from gateway.version import VERSION

# Labels and paths, in the order of the lines. Plugins serve most of them.
_PAGES = (
    ("shop", "/"),
    ("operator's pages", "/admin"),
    ("manifest for agents", "/.well-known/agent-manifest.json"),
    ("text for LLMs", "/llms.txt"),
)
_MAX_SLUGS = 6
_OF_THE_CORE = ("/.well-known/agent-manifest.json", "/llms.txt")


def print_addresses(gateway: Gateway) -> None:
    """Print the addresses if standard output is a terminal; programs read the log instead."""
    if is_terminal(sys.stdout):
        click.echo("\n".join(("", *describe_addresses(gateway), "")))


def describe_addresses(gateway: Gateway) -> list[str]:
    """Return the lines: what runs, on which network, and where people find it."""
    settings = gateway.settings
    lines = [f"Generation Gateway {VERSION} sells on {settings.network}. Ctrl-C stops it."]
    lines += [
        f"  {label:<20} {settings.base_url}{path}"
        for label, path in _PAGES
        if path in _OF_THE_CORE or gateway.lifecycle.find_mount(path)
    ]
    slugs = [endpoint.slug for endpoint in gateway.catalog]
    more = f" and {len(slugs) - _MAX_SLUGS} more" if len(slugs) > _MAX_SLUGS else ""
    lines.append(f"  {'offers':<20} {', '.join(slugs[:_MAX_SLUGS]) or 'none'}{more}")
    if not settings.base_url.endswith(f"//{settings.bind}"):
        lines.append(f"  {'listens at':<20} {settings.bind}")
    return lines
