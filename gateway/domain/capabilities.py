"""Capabilities that endpoints can sell: required request fields and result of each.

Registration, the test kit and docs/plugin-reference.md use this table. To add a capability, add a
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
    """A kind of generation, by the name that agents search for."""

    name: str
    # The fields that each request must have.
    required_fields: tuple[str, ...]
    # The request, in words.
    about: str
    # The provider's result, and how the gateway processes it.
    result: str


_ALL = (
    Capability(
        name=TEXT_TO_IMAGE,
        required_fields=("prompt",),
        about="A picture of the prompt's subject.",
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
        about="The text of the buyer's document.",
        result="Markdown as `text`; pictures of the document as `outputs`, if there are any.",
    ),
    Capability(
        name=DOCUMENT_EXTRACTION,
        required_fields=("prompt", "fileBase64", "fileName"),
        about="Data from the buyer's document. The prompt is a question or a JSON Schema.",
        result="A JSON object as `text`; the gateway checks that it is one.",
    ),
)

CAPABILITIES = {one.name: one for one in _ALL}
"""Every capability by its name."""


def missing_fields(endpoint: Endpoint) -> list[str]:
    """Return the fields that an endpoint should require for its capability, but does not.

    Empty for an unknown capability.
    """
    known = CAPABILITIES.get(endpoint.capability)
    needed = known.required_fields if known else ()
    return [name for name in needed if name not in required_fields(endpoint)]


def way_to_require(missing: Sequence[str]) -> str:
    """Return the missing fields, and how the author of an endpoint can require them."""
    named = " and ".join(missing)
    if missing == ["prompt"]:
        return f"{named}: name it in required_fields"
    return f"{named}: name them in required_fields, and the endings of the files in file_extensions"
