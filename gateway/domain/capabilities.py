"""The capabilities that are sold: what a request to each one needs, and what comes of it.

Registration, the test kit and docs/plugin-reference.md read this table, so a new capability is a
row here.
"""

from collections.abc import Sequence

import attrs

from gateway.domain.description import required_fields
from gateway.domain.offers import (
    DOCUMENT_EXTRACTION,
    DOCUMENT_PARSING,
    IMAGE_EDITING,
    TEXT_TO_IMAGE,
    Endpoint,
)


@attrs.frozen(kw_only=True)
class Capability:
    """What an endpoint does for a buyer, by the name that agents look for."""

    name: str

    # The fields that each request has, at least.
    required_fields: tuple[str, ...]

    # What a request asks for.
    about: str

    # What the provider returns, and what the gateway does with it.
    result: str


_ALL = (
    Capability(
        name=TEXT_TO_IMAGE,
        required_fields=("prompt",),
        about="A picture of what the prompt describes.",
        result="Pictures as `outputs`; the gateway checks them and converts them to the format "
        "that the buyer chose.",
    ),
    Capability(
        name=IMAGE_EDITING,
        required_fields=("prompt", "fileBase64", "fileName"),
        about="The buyer's picture, changed as the prompt says.",
        result="As for `text-to-image`.",
    ),
    Capability(
        name=DOCUMENT_PARSING,
        required_fields=("fileBase64", "fileName"),
        about="What the buyer's document says.",
        result="Markdown as `text`; pictures of the document as `outputs`, if there are any.",
    ),
    Capability(
        name=DOCUMENT_EXTRACTION,
        required_fields=("prompt", "fileBase64", "fileName"),
        about="What the prompt, a question or a JSON Schema, asks of the buyer's document.",
        result="A JSON object as `text`; the gateway checks that it is one.",
    ),
)

CAPABILITIES = {one.name: one for one in _ALL}
"""Every capability by its name."""


def missing_fields(endpoint: Endpoint) -> list[str]:
    """Return the fields of its capability that an endpoint does not require.

    There are none of a capability that is not in the table.
    """
    known = CAPABILITIES.get(endpoint.capability)
    needed = known.required_fields if known else ()
    return [name for name in needed if name not in required_fields(endpoint)]


def way_to_require(missing: Sequence[str]) -> str:
    """Return which fields are missing, and how an author has requests carry them."""
    named = " and ".join(missing)
    if missing == ["prompt"]:
        return f"{named}: name it in required_fields"
    return f"{named}: name them in required_fields, and the endings of the files in file_extensions"
