"""Readers for a vendor's JSON: a value of an unexpected type counts as absent, never as a crash."""

from collections.abc import Mapping
from typing import Any

from gateway.errors import Transient
from gateway.vendors.answer import Answer


def json_object(answer: Answer) -> dict[str, Any]:
    """Return the JSON object of an answer; an empty one if the body is anything else."""
    try:
        return as_object(answer.json())
    except Transient:
        return {}


def as_object(value: object) -> dict[str, Any]:
    """Return a JSON object unchanged; an empty one for a value of another type."""
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    """Return a text unchanged; an empty one for a value of another type."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> float | None:
    """Return a number unchanged; None for a value of another type, true and false included."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def job_urls(body: Mapping[str, object], **names: str) -> dict[str, str]:
    """Return a job's addresses by use, as `Handle.urls` wants them.

    Each argument is a use and the field of `body` with its address:
    `job_urls(body, poll="polling_url")`. A field that is absent or empty is left out.
    """
    found = {use: as_text(body.get(name)) for use, name in names.items()}
    return {use: url for use, url in found.items() if url}


def blamed_fields(body: Mapping[str, object], *, buyers: str = "") -> set[str]:
    """Return the names of the fields that a FastAPI server refuses, read from its `detail`.

    What stands inside the field `buyers` is left out: the buyer wrote it, and may have named its
    parts as the adapter's own fields are named.
    """
    details = body.get("detail")
    entries = details if isinstance(details, list) else []
    places = [as_object(entry).get("loc") for entry in entries]
    named = [place for place in places if isinstance(place, list)]
    ours = [
        place[: place.index(buyers)] if buyers and buyers in place else place for place in named
    ]
    return {as_text(name) for place in ours for name in place} - {""}
