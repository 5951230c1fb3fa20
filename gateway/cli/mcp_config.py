"""The command `gateway mcp-config`."""

import json
import re
from collections.abc import Mapping

import click

from gateway.cli.terminal import one_sentence
from gateway.errors import SettingsError
from gateway.settings import load_settings
from gateway.web.mcp import serves_mcp

_ODD = re.compile(r"[^a-z0-9]+")


@click.command("mcp-config")
@one_sentence
def mcp_config() -> None:
    """Print what goes into Claude, Cursor and Codex.

    They then see what this gateway sells, as tools.
    """
    settings = load_settings()
    if not serves_mcp(settings):
        raise SettingsError(
            "This gateway does not serve /mcp. Run pip install 'generation-gateway[mcp]', and do "
            "not set GATEWAY_MCP=false."
        )
    name = _ODD.sub("-", settings.name.lower()).strip("-") or "gateway"
    for title, text in _snippets(name, f"{settings.base_url}/mcp").items():
        click.echo(f"# {title}\n{text}\n")
    click.echo(
        "# These programs show the tools and their prices. They have no wallet: a program with an\n"
        "# x402 client pays, see docs/mcp.md."
    )


def _snippets(name: str, url: str) -> dict[str, str]:
    """Return the text for each program, by where it goes."""
    # Claude Desktop starts programs from its file; it takes an address only in its settings.
    bridge = {"command": "npx", "args": ["-y", "mcp-remote", url]}
    return {
        "Claude Code: run": f"claude mcp add --transport http {name} {url}",
        "Claude Desktop: Settings > Connectors > Add custom connector": url,
        "Claude Desktop with Node: claude_desktop_config.json": _servers(name, bridge),
        "Cursor: ~/.cursor/mcp.json, or .cursor/mcp.json": _servers(name, {"url": url}),
        "Codex: ~/.codex/config.toml": f"[mcp_servers.{name}]\nurl = {json.dumps(url)}",
    }


def _servers(name: str, server: Mapping[str, object]) -> str:
    return json.dumps({"mcpServers": {name: server}}, indent=2)
