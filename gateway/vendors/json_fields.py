"""What a vendor's JSON says, read without trust: a wrong shape is a missing fact, never a crash."""

from collections.abc import Mapping
from typing import Any

from gateway.errors import Transient
from gateway.vendors import Answer


def reply(answer: Answer) -> dict[str, Any]:
    """Return the JSON object that an API answered with; an empty one where it sent none."""
    try:
        return fields(answer.json())
    except Transient:
        return {}


def fields(value: object) -> dict[str, Any]:
    """Return an object as it is; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    """Return a text as it is; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """Return a number, None for anything else."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def links(body: Mapping[str, object], **names: str) -> dict[str, str]:
    """Return the addresses that an API gave, by use: `links(body, poll="polling_url")`."""
    found = {use: text(body.get(name)) for use, name in names.items()}
    return {use: url for use, url in found.items() if url}


def blamed(body: Mapping[str, object]) -> set[str]:
    """Return the fields that a FastAPI server's `detail` finds fault with."""
    details = body.get("detail")
    places = [fields(entry).get("loc") for entry in details] if isinstance(details, list) else []
    return {text(name) for place in places if isinstance(place, list) for name in place} - {""}
