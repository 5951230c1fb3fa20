"""Capabilities, and JSON Schemas (2020-12) and examples of an endpoint's requests and responses.

OpenAPI, the x402 challenge, the MCP tools, the manifest and the playground are derived from them.
The functions are pure; callers may modify the results.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from gateway.domain.acceptance import accept_anything, accept_data, accept_pictures, accept_text
from gateway.domain.offers import (
    DOCUMENT_EXTRACTION,
    DOCUMENT_PARSING,
    IMAGE_EDITING,
    MAX_CALLBACK_CHARS,
    MAX_FILE_BYTES,
    MAX_FILE_NAME_CHARS,
    MAX_PICTURE_PIXELS,
    MAX_PROMPT_CHARS,
    MIN_PICTURE_SIDE,
    TEXT_TO_IMAGE,
    Choice,
    Endpoint,
    GenerationRequest,
    Result,
)

# Request fields with a fixed list of values.
CHOICES = ("aspect_ratio", "output_format", "resolution")
# The fields of a file: a request has both or none.
FILE_FIELDS = ("fileBase64", "fileName")
MAX_FILE_MB = MAX_FILE_BYTES / 10**6
# Four characters of Base64 for each three bytes, with padding.
_MAX_BASE64_CHARS = -(-MAX_FILE_BYTES // 3) * 4
_PROMPT = {
    TEXT_TO_IMAGE: "What to show in the picture.",
    IMAGE_EDITING: "What to change in the picture.",
    DOCUMENT_EXTRACTION: (
        "What to find in the document: a question in words, or a JSON Schema of type object that "
        "the JSON of the result follows."
    ),
}
_PICTURE_LIMIT = (
    f" A still picture, {MIN_PICTURE_SIDE} pixels or more a side, "
    f"{MAX_PICTURE_PIXELS // 10**6} megapixels at most."
)
_PAGES_FORMAT = (
    "`json`: a second output has the pages as JSON, with the cells of their tables and with notes."
)
_EXAMPLE_PROMPT = "a lighthouse above a stormy sea at night"
_EXAMPLE_CHANGE = "make it winter, with falling snow"
_EXAMPLE_QUESTION = "What is it about, and which dates and amounts does it name?"
_TASK_ID = "6f1c2f5e-9d0b-4c57-8f0e-3d1a5b7c9e21"
_EXAMPLE_TEXT = {"fileBase64": "IyBSZXBvcnQKCkhlbGxvLgo=", "fileName": "report.txt"}
# A PNG of 64 by 64 pixels, half of them black.
_EXAMPLE_PICTURE = {
    "fileBase64": "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQAAAACCEkxzAAAAFklEQVR42mP8zwABTAyjDCyMUYAf"
    "AACp/wE/ErL4KwAAAABJRU5ErkJggg==",
    "fileName": "photo.png",
}
# The first bytes of a PDF; a real file has more.
_EXAMPLE_PDF = "JVBERi0xLjcK"


def choices_of(endpoint: Endpoint) -> dict[str, Choice]:
    """Return the choices of an endpoint's requests, by field name."""
    choices = {name: getattr(endpoint, name) for name in CHOICES}
    return {name: choice for name, choice in choices.items() if choice.values}


def required_fields(endpoint: Endpoint) -> list[str]:
    """Return the fields that every request to this endpoint must have."""
    file = FILE_FIELDS if endpoint.takes_file else ()
    return list(dict.fromkeys((*endpoint.required_fields, *file)))


def promised_pixels(endpoint: Endpoint) -> str:
    """Return in words the pixels that each resolution promises; empty if none does."""
    orders = [GenerationRequest(resolution=name) for name in endpoint.resolution.values]
    promised = [f"{n:,} at {one.resolution}" for one in orders if (n := endpoint.pixels_of(one))]
    if not promised or not endpoint.sells_pictures:
        return ""
    exception = ", fewer for an edit of a long picture" if endpoint.edits_pictures else ""
    return f"pixels at least: {', '.join(promised)}{exception}"


def price_range(endpoint: Endpoint) -> tuple[int, int]:
    """Return the lowest and the highest price of a request, in units of 10⁻⁶ USDC."""
    prices = [endpoint.price_units, *(step.price_units for step in endpoint.price_steps)]
    if endpoint.price_per_page is not None and endpoint.max_pages is not None:
        prices.append(max(prices[0], endpoint.price_per_page * endpoint.max_pages))
    return min(prices), max(prices)


def request_schema(
    endpoint: Endpoint, *, callbacks: bool = False, promises: bool = True
) -> dict[str, Any]:
    """Return the schema of the JSON body of a request to this endpoint.

    `callbacks`: whether the gateway sends webhooks. Without `promises`
    it does not say how many pixels a resolution has.

    The schema accepts some bodies that validation refuses before payment. It cannot express the
    decoded size of Base64, the extension of `fileName`, the number of pages, the requirements for a
    picture, the JSON Schema in a prompt, a file sent to an endpoint that takes none, lone
    surrogates, or the provider's own checks.
    """
    return {
        "type": "object",
        "properties": {
            **_prompt(endpoint),
            **_choices(endpoint, promises=promises),
            **_file(endpoint),
            **(callback_fields() if callbacks else {}),
        },
        "required": required_fields(endpoint),
    }


def _prompt(endpoint: Endpoint) -> dict[str, Any]:
    about = _PROMPT.get(endpoint.capability, "What to make, in your own words.")
    if not endpoint.reads_prompt:
        about = "Ignored, so leave it out: the result is the whole document."
    length = {"minLength": 1, "maxLength": min(endpoint.max_prompt_chars, MAX_PROMPT_CHARS)}
    return {"prompt": {"type": "string", **length, "description": about}}


def _choices(endpoint: Endpoint, *, promises: bool) -> dict[str, Any]:
    fields = {}
    for name, choice in choices_of(endpoint).items():
        field = {"type": "string", "enum": list(choice.values)}
        fields[name] = field if choice.default is None else field | {"default": choice.default}
    if endpoint.capability == DOCUMENT_PARSING and "output_format" in fields:
        fields["output_format"]["description"] = _PAGES_FORMAT
    if promises and (promise := promised_pixels(endpoint)):
        fields["resolution"]["description"] = f"{promise[0].upper()}{promise[1:]}."
    return fields


def _file(endpoint: Endpoint) -> dict[str, Any]:
    if not endpoint.takes_file:
        return {}
    limit = f" It may have {endpoint.max_pages:,} pages." if endpoint.max_pages else ""
    fields = file_fields()
    fields["fileBase64"]["description"] += _PICTURE_LIMIT if endpoint.edits_pictures else limit
    fields["fileName"]["description"] = f"Ends in one of {', '.join(endpoint.file_extensions)}."
    return fields


def file_fields() -> dict[str, dict[str, Any]]:
    """Return the two fields of a file."""
    return {
        "fileBase64": {
            "type": "string",
            "contentEncoding": "base64",
            "minLength": 1,
            "maxLength": _MAX_BASE64_CHARS,
            "description": f"The file in Base64, up to {MAX_FILE_MB:g} MB decoded.",
        },
        "fileName": {"type": "string", "minLength": 1, "maxLength": MAX_FILE_NAME_CHARS},
    }


def callback_fields() -> dict[str, Any]:
    """Return the field that requests webhooks, in either flow.

    The parser is stricter: it refuses a user name and a port out of range.
    """
    return {
        "callbackUrl": {
            "type": "string",
            "format": "uri",
            "pattern": "^https://",
            "maxLength": MAX_CALLBACK_CHARS,
            "description": "An https URL that receives the outcome of the task.",
        }
    }


def request_example(endpoint: Endpoint) -> dict[str, Any]:
    """Return a short valid body for an endpoint."""
    body: dict[str, Any] = {}
    if "prompt" in endpoint.required_fields:
        body["prompt"] = _example_prompt(endpoint)[: endpoint.max_prompt_chars]
    for name, choice in choices_of(endpoint).items():
        if choice.default is not None:
            body[name] = choice.default
    if endpoint.edits_pictures:
        body |= _EXAMPLE_PICTURE
    elif ".txt" in endpoint.file_extensions:
        body |= _EXAMPLE_TEXT
    elif endpoint.takes_file:
        name = f"report{endpoint.file_extensions[0]}"
        body |= {"fileBase64": _EXAMPLE_PDF, "fileName": name}
    return body


def _example_prompt(endpoint: Endpoint) -> str:
    if endpoint.edits_pictures:
        return _EXAMPLE_CHANGE
    return _EXAMPLE_QUESTION if endpoint.extracts_data else _EXAMPLE_PROMPT


def started_example() -> Mapping[str, Any]:
    """Return an example response for a started generation (spec §2.3)."""
    return {"success": True, "taskId": _TASK_ID, "statusUrl": f"/api/task/{_TASK_ID}"}


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
    # Compares a result with the order, and returns it as it is kept.
    accept: Callable[[Endpoint, GenerationRequest, Result], Result]


_ALL = (
    Capability(
        name=TEXT_TO_IMAGE,
        required_fields=("prompt",),
        about="A picture of the prompt's subject.",
        result="Pictures as `outputs`, of the ordered ratio and pixels; the gateway checks them "
        "and converts them to the format that the buyer chose.",
        accept=accept_pictures,
    ),
    Capability(
        name=IMAGE_EDITING,
        required_fields=("prompt", "fileBase64", "fileName"),
        about="The buyer's picture, changed as the prompt says.",
        result="As for `text-to-image`.",
        accept=accept_pictures,
    ),
    Capability(
        name=DOCUMENT_PARSING,
        required_fields=("fileBase64", "fileName"),
        about="The text of the buyer's document.",
        result="Markdown with words as `text`; pictures of the document as `outputs`, if there are "
        "any.",
        accept=accept_text,
    ),
    Capability(
        name=DOCUMENT_EXTRACTION,
        required_fields=("prompt", "fileBase64", "fileName"),
        about="Data from the buyer's document. The prompt is a question or a JSON Schema.",
        result="A JSON object as `text`, with a value; the gateway compares it with the schema.",
        accept=accept_data,
    ),
)

CAPABILITIES = {one.name: one for one in _ALL}
"""Every capability by its name, for registration, the test kit and docs/plugin-reference.md."""


def accept(endpoint: Endpoint, request: GenerationRequest, result: Result) -> Result:
    """Compare a result with the order, as its capability declares; return it as it is kept.

    Pictures must have been measured. Raises `NotAsOrdered` and `ResultUnusable`.
    """
    known = CAPABILITIES.get(endpoint.capability)
    return (known.accept if known else accept_anything)(endpoint, request, result)


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
