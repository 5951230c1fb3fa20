"""What an endpoint takes and answers, as JSON Schema 2020-12 with examples.

OpenAPI, the x402 challenge, the MCP tools, the manifest and the playground are views of it. The
functions are pure, and their results hold fresh dictionaries that a caller may change.
"""

from collections.abc import Mapping
from typing import Any

from gateway.domain.offers import (
    MAX_CALLBACK_CHARS,
    MAX_FILE_BYTES,
    MAX_PROMPT_CHARS,
    TEXT_TO_IMAGE,
    Endpoint,
)

# The fields with a list of values, as a request names them.
CHOICES = ("aspect_ratio", "output_format", "resolution")
_MAX_NAME_CHARS = 255
# Four characters of Base64 for each three bytes, with padding.
_MAX_BASE64_CHARS = -(-MAX_FILE_BYTES // 3) * 4
_PROMPT = {TEXT_TO_IMAGE: "What to show in the picture."}
_EXAMPLE_PROMPT = "a lighthouse above a stormy sea at night"
_TASK_ID = "6f1c2f5e-9d0b-4c57-8f0e-3d1a5b7c9e21"


def request_schema(endpoint: Endpoint, *, callbacks: bool = True) -> dict[str, Any]:
    """Return the schema of a request's JSON body at this endpoint.

    `callbacks` says whether the gateway sends webhooks (`Settings.sends_webhooks`).

    Three rules are not in it, because a schema cannot say them or they take the file: the ending
    of `fileName`, the number of pages, and what the provider itself checks.
    """
    return {
        "type": "object",
        "properties": {
            **_prompt(endpoint),
            **_choices(endpoint),
            **_file(endpoint),
            **(callback_fields() if callbacks else {}),
        },
        "required": list(endpoint.required_fields),
    }


def _prompt(endpoint: Endpoint) -> dict[str, Any]:
    about = _PROMPT.get(endpoint.capability, "What to look for, in your own words.")
    length = {"minLength": 1, "maxLength": min(endpoint.max_prompt_chars, MAX_PROMPT_CHARS)}
    return {"prompt": {"type": "string", **length, "description": about}}


def _choices(endpoint: Endpoint) -> dict[str, Any]:
    fields = {}
    for name in CHOICES:
        choice = getattr(endpoint, name)
        if choice.values:
            field = {"type": "string", "enum": list(choice.values)}
            fields[name] = field if choice.default is None else field | {"default": choice.default}
    return fields


def _file(endpoint: Endpoint) -> dict[str, Any]:
    if not endpoint.takes_file:
        return {}
    pages = f" It may have {endpoint.max_pages:,} pages." if endpoint.max_pages else ""
    return {
        "fileBase64": {
            "type": "string",
            "contentEncoding": "base64",
            "minLength": 1,
            "maxLength": _MAX_BASE64_CHARS,
            "description": f"The file in Base64, up to 7.5 MB decoded.{pages}",
        },
        "fileName": {
            "type": "string",
            "minLength": 1,
            "maxLength": _MAX_NAME_CHARS,
            "description": f"Ends in one of {', '.join(endpoint.file_extensions)}.",
        },
    }


def callback_fields() -> dict[str, Any]:
    """Return the field by which a request of either flow asks for webhooks.

    The schema says less than the parser: in production http is refused, and a user name always.
    """
    return {
        "callbackUrl": {
            "type": "string",
            "format": "uri",
            "pattern": "^https?://",
            "maxLength": MAX_CALLBACK_CHARS,
            "description": "An https address that is told how the task ends.",
        }
    }


def request_example(endpoint: Endpoint) -> dict[str, Any]:
    """Return a short body that the endpoint takes."""
    body: dict[str, Any] = {}
    if "prompt" in endpoint.required_fields:
        body["prompt"] = _EXAMPLE_PROMPT[: endpoint.max_prompt_chars]
    for name in CHOICES:
        choice = getattr(endpoint, name)
        if choice.default is not None:
            body[name] = choice.default
    if endpoint.takes_file:
        # The first bytes of a PDF; a real file has more.
        body |= {"fileBase64": "JVBERi0xLjcK", "fileName": f"report{endpoint.file_extensions[0]}"}
    return body


def started_example() -> Mapping[str, Any]:
    """Return an example of the answer that a generation has started (spec §2.3)."""
    return {"success": True, "taskId": _TASK_ID, "statusUrl": f"/api/task/{_TASK_ID}"}
