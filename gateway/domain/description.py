"""JSON Schemas (2020-12) and examples of an endpoint's requests and responses.

OpenAPI, the x402 challenge, the MCP tools, the manifest and the playground are derived from them.
The functions are pure; callers may modify the results.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.domain.offers import (
    MAX_CALLBACK_CHARS,
    MAX_FILE_BYTES,
    MAX_FILE_NAME_CHARS,
    MAX_PROMPT_CHARS,
    Choice,
    Endpoint,
    GenerationRequest,
)

# Request fields with a fixed list of values.
CHOICES = ("aspect_ratio", "output_format", "resolution")
# The fields of a file: a request has both or none.
FILE_FIELDS = ("fileBase64", "fileName")
MAX_FILE_MB = MAX_FILE_BYTES / 10**6
# Four characters of Base64 for each three bytes, with padding.
_MAX_BASE64_CHARS = -(-MAX_FILE_BYTES // 3) * 4
# An example has the first bytes of a file; a header of each 402 carries it.
_MAX_EXAMPLE_BYTES = 120
_TASK_ID = "6f1c2f5e-9d0b-4c57-8f0e-3d1a5b7c9e21"


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
    if endpoint.unit_price is not None:
        prices.append(max(prices[0], endpoint.unit_price.highest))
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
    prompt = endpoint.declaration.prompt
    about = prompt.about if endpoint.reads_prompt else prompt.ignored
    length = {"minLength": 1, "maxLength": min(endpoint.max_prompt_chars, MAX_PROMPT_CHARS)}
    return {"prompt": {"type": "string", **length, "description": about}}


def _choices(endpoint: Endpoint, *, promises: bool) -> dict[str, Any]:
    fields = {}
    for name, choice in choices_of(endpoint).items():
        field = {"type": "string", "enum": list(choice.values)}
        fields[name] = field if choice.default is None else field | {"default": choice.default}
    if "output_format" in fields and (about := endpoint.declaration.formats_about):
        fields["output_format"]["description"] = about
    if promises and (promise := promised_pixels(endpoint)):
        fields["resolution"]["description"] = f"{promise[0].upper()}{promise[1:]}."
    return fields


def _file(endpoint: Endpoint) -> dict[str, Any]:
    if not endpoint.takes_file:
        return {}
    limit = f" It may have {endpoint.max_pages:,} pages." if endpoint.max_pages else ""
    fields = file_fields()
    if endpoint.unit_price is not None and endpoint.unit_price.unit.of == "file":
        limit = f" It may have {endpoint.unit_price.most:,} {endpoint.unit_price.unit.plural}."
    about = "".join(kind.about for kind in endpoint.file_kinds)
    fields["fileBase64"]["description"] += about + limit
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
    """Return a short valid body for an endpoint, but of a large file only the first bytes."""
    body: dict[str, Any] = {}
    if "prompt" in endpoint.required_fields:
        body["prompt"] = endpoint.declaration.prompt.example[: endpoint.max_prompt_chars]
    for name, choice in choices_of(endpoint).items():
        if choice.default is not None:
            body[name] = choice.default
    if sample := sample_file(endpoint):
        name, data = sample
        first = base64.b64encode(data[:_MAX_EXAMPLE_BYTES]).decode()
        body |= {"fileBase64": first, "fileName": name}
    return body


def sample_file(endpoint: Endpoint) -> tuple[str, bytes] | None:
    """Return name and bytes of a small file for an endpoint; None if its kinds have none."""
    samples = (kind.sample(endpoint.file_extensions) for kind in endpoint.file_kinds)
    return next(filter(None, samples), None)


def started_example() -> Mapping[str, Any]:
    """Return an example response for a started generation (spec §2.3)."""
    return {"success": True, "taskId": _TASK_ID, "statusUrl": f"/api/task/{_TASK_ID}"}


def missing_fields(endpoint: Endpoint) -> list[str]:
    """Return the fields that an endpoint should require for its capability, but does not."""
    needed = endpoint.declaration.required_fields
    return [name for name in needed if name not in required_fields(endpoint)]


def way_to_require(missing: Sequence[str]) -> str:
    """Return the missing fields, and how the author of an endpoint can require them."""
    named = " and ".join(missing)
    if missing == ["prompt"]:
        return f"{named}: name it in required_fields"
    return f"{named}: name them in required_fields, and the endings of the files in file_extensions"
