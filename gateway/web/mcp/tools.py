"""The tools: one for each endpoint on sale, and a free one that shows a task."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.domain import Endpoint
from gateway.domain.description import price_range, request_schema
from gateway.plugins.catalog import Catalog
from gateway.web import wire

GET_TASK = "get_task"
# Some models take no other characters in a tool's name.
_ODD = re.compile(r"[^a-z0-9_]")
_MAX_WAIT_S = 30
_MAX_ID_CHARS = 64


def slugs_of_tools(catalog: Catalog) -> Mapping[str, str]:
    """Return the slug behind each tool's name: the slug itself, with `_` for `-` and `.`."""
    return catalog.keep("mcp-slugs", lambda: _name_tools(endpoint.slug for endpoint in catalog))


def _name_tools(slugs: Iterable[str]) -> Mapping[str, str]:
    named: dict[str, str] = {}
    for slug in slugs:
        name = _ODD.sub("_", slug)
        while name in named or name == GET_TASK:
            name += "_"
        named[name] = slug
    return named


def list_tools(catalog: Catalog, network: str) -> list[dict[str, Any]]:
    """Return every tool as `tools/list` shows it."""
    sold = [
        _describe(name, catalog[slug].endpoint, network)
        for name, slug in slugs_of_tools(catalog).items()
    ]
    return [*sold, _describe_get_task()]


def _describe(name: str, endpoint: Endpoint, network: str) -> dict[str, Any]:
    price = f"Costs {_price_of(endpoint)} USDC on {network}, paid by x402."
    return {
        "name": name,
        "title": endpoint.title,
        "description": f"{endpoint.description.rstrip()} {price}".lstrip(),
        "inputSchema": input_schema(endpoint),
        "annotations": {
            "title": endpoint.title,
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": True,
        },
        # The client of Cloudflare's `agents` shows the price to the model.
        "_meta": {
            "agents-x402/paymentRequired": True,
            "agents-x402/priceUSD": wire.number(endpoint.price_units),
        },
    }


def _price_of(endpoint: Endpoint) -> str:
    lowest, highest = map(wire.decimal, price_range(endpoint))
    return lowest if lowest == highest else f"{lowest} to {highest}"


def input_schema(endpoint: Endpoint) -> dict[str, Any]:
    """Return the schema of a tool's arguments: the request's, and `fileUrl` where it has a file.

    Some models take no `anyOf` here, so a sentence says that one of the two is needed.
    """
    schema = request_schema(endpoint)
    if not endpoint.takes_file:
        return schema
    ways = "Give either this or fileBase64 with fileName."
    schema["properties"]["fileUrl"] = {
        "type": "string",
        "format": "uri",
        "pattern": "^https://",
        "description": f"A public https address of the file, up to 7.5 MB. {ways}",
    }
    of_file = ("fileBase64", "fileName")
    schema["required"] = [name for name in schema["required"] if name not in of_file]
    return schema


def _describe_get_task() -> dict[str, Any]:
    return {
        "name": GET_TASK,
        "title": "Look at a task",
        "description": "Free. Shows what became of a purchase, with its result once it is done. "
        f"With wait, answers when the task is done, or after that many seconds: {_MAX_WAIT_S} at "
        "most.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "taskId": {"type": "string", "minLength": 1, "maxLength": _MAX_ID_CHARS},
                "wait": {"type": "integer", "minimum": 0, "maximum": _MAX_WAIT_S, "default": 0},
            },
            "required": ["taskId"],
        },
        "annotations": {"title": "Look at a task", "readOnlyHint": True, "idempotentHint": True},
    }
