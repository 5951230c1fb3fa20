"""Readers for a vendor's JSON. A value of an unexpected type counts as absent."""

from collections.abc import Mapping
from typing import Any

from gateway.errors import Transient
from gateway_vendors.answer import Answer


def json_object(answer: Answer) -> dict[str, Any]:
    """Return the JSON object in a response, or an empty one."""
    try:
        return as_object(answer.json())
    except Transient:
        return {}


def as_object(value: object) -> dict[str, Any]:
    """Return a JSON object unchanged, or an empty one for another type."""
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    """Return a string unchanged, or an empty one for another type."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> float | None:
    """Return a number unchanged, or None for another type, including booleans."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def job_urls(body: Mapping[str, object], **names: str) -> dict[str, str]:
    """Return a job's URLs by purpose, as in `Handle.urls`.

    Each argument is a purpose and the field of `body` with its URL: `job_urls(body,
    poll="polling_url")`. Absent or empty fields are left out.
    """
    found = {use: as_text(body.get(name)) for use, name in names.items()}
    return {use: url for use, url in found.items() if url}


def blamed_fields(body: Mapping[str, object], *, buyers: str = "") -> set[str]:
    """Return the names of the fields that a FastAPI server rejects, from its `detail`.

    Names inside the field `buyers` are left out: the buyer chose them, and they may equal the
    adapter's own field names.
    """
    details = body.get("detail")
    entries = details if isinstance(details, list) else []
    places = [as_object(entry).get("loc") for entry in entries]
    named = [place for place in places if isinstance(place, list)]
    ours = [
        place[: place.index(buyers)] if buyers and buyers in place else place for place in named
    ]
    return {as_text(name) for place in ours for name in place} - {""}
