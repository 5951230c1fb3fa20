"""JSON Schemas of the direct flow's request, and of all responses."""

from collections.abc import Iterable
from typing import Any

from gateway.domain import MAX_PROMPT_CHARS, Endpoint
from gateway.domain.built_in import KNOWN_FORMATS
from gateway.domain.description import FILE_FIELDS, callback_fields, file_fields
from gateway.domain.offers import ASPECT_RATIOS, PAYER_SIGNATURE, TX_HASH


def direct_request_schema(
    endpoints: Iterable[Endpoint], *, must_sign: bool = False, callbacks: bool = False
) -> dict[str, Any]:
    """Return the schema of the body of `POST /api/proxy-generate` (spec §2.2).

    `must_sign`: whether `payerSignature` is required. Further constraints depend on the slug: see
    `request_schema` of that endpoint.
    """
    required = ["slug", "txHash", *(["payerSignature"] if must_sign else [])]
    endpoints = list(endpoints)
    own = (value for one in endpoints for value in one.output_format.values)
    formats = list(dict.fromkeys((*KNOWN_FORMATS, *own)))
    return {
        "type": "object",
        "properties": {
            "slug": {"type": "string", "enum": [endpoint.slug for endpoint in endpoints]},
            "txHash": {
                "type": "string",
                "pattern": f"^{TX_HASH}$",
                "description": "The hash of the mined USDC transfer that pays.",
            },
            "prompt": {"type": "string", "minLength": 1, "maxLength": MAX_PROMPT_CHARS},
            "aspect_ratio": {"type": "string", "enum": list(ASPECT_RATIOS)},
            "output_format": {"type": "string", "enum": formats},
            "resolution": {"type": "string"},
            **file_fields(),
            "payerSignature": {
                "type": "string",
                "pattern": f"^{PAYER_SIGNATURE}$",
                "description": "The transfer's sender signs the request; see /llms.txt. "
                "A hash is public: without this, the first client to send it gets the task.",
            },
            **(callback_fields() if callbacks else {}),
        },
        "required": required,
        "anyOf": [{"required": ["prompt"]}, {"required": list(FILE_FIELDS)}],
    }


def started_schema() -> dict[str, Any]:
    """Return the schema of the answer to a purchase (spec §2.3)."""
    return {
        "type": "object",
        "properties": {
            "success": {"const": True},
            "taskId": {"type": "string", "format": "uuid"},
            "statusUrl": {"type": "string", "description": "Relative to the gateway's address."},
            "message": {"type": "string"},
            "paidAmount": {"type": "number", "description": "USDC; direct flow only."},
            "callbackSecret": {
                "type": "string",
                "description": "Signs the events for `callbackUrl`, by Standard Webhooks.",
            },
        },
        "required": ["success", "taskId", "statusUrl", "message"],
    }


def task_schema() -> dict[str, Any]:
    """Return the schema of a task, the answer of `GET /api/task/{taskId}`."""
    text, number = {"type": ["string", "null"]}, {"type": ["number", "null"]}
    time = {"type": ["string", "null"], "format": "date-time"}
    return {
        "type": "object",
        "properties": {
            "taskId": {"type": "string"},
            "status": {"enum": ["queued", "processing", "completed", "failed"]},
            "done": {"type": "boolean", "description": "Whether the task has ended."},
            "slug": {"type": "string"},
            "capability": {"type": "string"},
            "model": {
                "type": "string",
                "description": "The model that makes it, if the endpoint has a fallback.",
            },
            "progress": number | {"description": "From 0 to 1."},
            "waitsFor": {
                "const": "memory",
                "description": "Only while the gateway's machine has no memory free for the task.",
            },
            "attempt": {"type": "integer"},
            "maxAttempts": {"type": "integer"},
            "pollAfterSeconds": number,
            **dict.fromkeys(("createdAt", "startedAt", "completedAt", "expiresAt"), time),
            "decidedBy": time
            | {"description": "Only while the payment is open: by when it is decided."},
            "payment": _payment_schema(),
            "result": _result_schema(),
            **dict.fromkeys(("error", "code", "details"), text),
            "refund": _refund_schema(),
        },
        "required": ["taskId", "status", "done", "payment", "result", "error", "refund"],
    }


def _refund_schema() -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "properties": {
            "state": {"type": "string"},
            "amount": {"type": "number", "description": "USDC."},
            "transaction": {"type": ["string", "null"]},
            "message": {"type": "string", "description": "The state for people."},
        },
    }


def _payment_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "flow": {"type": "string", "description": "x402, direct, or a payment method's name."},
            "state": {"type": "string"},
            "amount": {"type": "number", "description": "USDC."},
            "network": {"type": "string"},
            "transaction": {
                "type": ["string", "null"],
                "description": "On the chain; null before that, and of a payment method.",
            },
        },
        "required": ["flow", "state", "amount", "network"],
    }


def _result_schema() -> dict[str, Any]:
    output = {
        "type": "object",
        "properties": {
            "url": {
                "type": ["string", "null"],
                "description": "Expires. A new request for the task gives a fresh one.",
            },
            "mimeType": {"type": "string"},
            "bytes": {"type": "integer"},
            "sha256": {"type": "string"},
            "width": {"type": "integer", "description": "Pixels; pictures only."},
            "height": {"type": "integer", "description": "Pixels; pictures only."},
            "seconds": {"type": "number", "description": "Sound and video only."},
            "expired": {"const": True, "description": "Set once the file is deleted."},
        },
        "required": ["url", "mimeType", "bytes", "sha256"],
    }
    return {
        "type": ["object", "null"],
        "properties": {
            "outputs": {"type": "array", "items": output},
            "text": {"type": ["string", "null"], "description": "Markdown or JSON of a document."},
        },
        "required": ["outputs", "text"],
    }


def challenge_schema() -> dict[str, Any]:
    """Return the schema of a 402's body (spec §2.4)."""
    entry = {
        "type": "object",
        "properties": {
            "scheme": {"const": "exact"},
            "network": {"type": "string"},
            "asset": {"type": "string"},
            "amount": {"type": "string", "description": "Units of 0.000001 USDC."},
            "recipient": {"type": "string"},
        },
        "required": ["scheme", "network", "asset", "amount", "recipient"],
    }
    return {
        "type": "object",
        "properties": {
            "x402Version": {"type": "integer"},
            "error": {"type": "string"},
            "accepts": {"type": "array", "items": entry},
            "charged": {
                "const": False,
                "description": "The refused payment took nothing. Missing if that is unknown.",
            },
            "details": {"type": "string"},
            "money": {"type": "object", "description": "Of test and play money only."},
        },
        "required": ["x402Version", "error", "accepts"],
    }


def error_schema() -> dict[str, Any]:
    """Return the schema of an error's body (spec §2.6)."""
    return {
        "type": "object",
        "properties": {
            "error": {"type": "string", "description": "A sentence for people."},
            "code": {"type": "string"},
            "details": {"type": "string"},
        },
        "required": ["error"],
    }
