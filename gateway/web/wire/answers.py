"""The JSON of a started generation, a task and a webhook, and JSON Schemas of responses."""

import functools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.domain import (
    MAX_ATTEMPTS,
    Flow,
    PaymentState,
    Refund,
    StoredOutput,
    Task,
    TaskStatus,
)

# The poll interval of the specification.
POLL_S = 2  # seconds
# Limits amplification: for one payment, an event is sent up to six times to any address.
MAX_EVENT_BYTES = 64 * 1024
# States without a name in the specification.
_STATUS = {TaskStatus.HELD: "queued", TaskStatus.DROPPED: "failed"}


def number(units: int) -> float:
    """Convert units of 10⁻⁶ USDC to a JSON number of USDC."""
    return units / 10**6


def decimal(units: int) -> str:
    """Format units of 10⁻⁶ USDC without trailing zeros, such as `0.02`."""
    return f"{number(units):.6f}".rstrip("0").rstrip(".")


def started(task: Task, callback_secret: str | None = None) -> dict[str, Any]:
    """Return the answer to a purchase (spec §2.3).

    `callback_secret` signs the task's events if the buyer sent a `callbackUrl`.
    """
    body: dict[str, Any] = {
        "success": True,
        "taskId": task.id,
        "statusUrl": f"/api/task/{task.id}",
        "message": "The generation has started. Poll statusUrl for the result: every 2 seconds, "
        "or with ?wait=30, which answers once the task is done.",
    }
    if task.payment.flow is Flow.DIRECT and task.payment.method is None:
        body["paidAmount"] = number(task.payment.paid_units or 0)
    if callback_secret is not None:
        body["callbackSecret"] = callback_secret
    return body


def task(task: Task, *, network: str, links: Sequence[str]) -> dict[str, Any]:
    """Return the body of `GET /api/task/{taskId}`, without prompt, payer and file.

    `links` has a link for each output; it is empty after the outputs are deleted.
    """
    status = _STATUS.get(task.status, str(task.status))
    held = {"decidedBy": _write_time(task.payment.decided_by)}
    return {
        "taskId": task.id,
        "status": status,
        "done": task.is_done,
        "slug": task.slug,
        "capability": task.capability,
        "progress": task.progress,
        "attempt": task.attempt,
        "maxAttempts": MAX_ATTEMPTS,
        "pollAfterSeconds": None if task.is_done else POLL_S,
        "createdAt": _write_time(task.created_at),
        "startedAt": _write_time(task.started_at),
        "completedAt": _write_time(task.completed_at),
        "expiresAt": _write_time(task.expires_at),
        "payment": {
            "flow": task.payment.method or str(task.payment.flow),
            "state": _write_payment_state(task.payment.state),
            "amount": number(task.payment.paid_units or task.payment.price_units),
            "network": network,
            "transaction": task.payment.paid_tx if task.payment.method is None else None,
        },
        "result": _write_result(task, links),
        "error": task.error,
        "code": task.code,
        "details": task.details,
        "refund": _write_refund(task.refund),
        **(held if task.status is TaskStatus.HELD else {}),
    }


def event(
    kind: str, at: float, shown_task: Mapping[str, Any], *, status_url: str, is_cut: bool
) -> bytes:
    """Return the body of a webhook, at most 64 KB; `at` is in Unix seconds.

    A larger body omits the text and then the outputs, which are at `status_url`. `is_cut` means
    that `shown_task` already lacks its long text.
    """
    body = {"type": kind, "timestamp": _write_time(at), "data": shown_task}
    written = encode(body)
    if len(written) <= MAX_EVENT_BYTES and not is_cut:
        return written
    for outputs in ((shown_task["result"] or {})["outputs"], ()):
        short = {"outputs": outputs, "text": None, "omitted": True}
        written = encode(body | {"data": {**shown_task, "result": short, "statusUrl": status_url}})
        if len(written) <= MAX_EVENT_BYTES:
            break
    return written


def _write_payment_state(state: PaymentState) -> str:
    """Return a payment's state up to settlement; the field `refund` has the later states."""
    before = (PaymentState.RESERVED, PaymentState.SETTLING, PaymentState.RELEASED)
    return str(state) if state in before else str(PaymentState.SETTLED)


def _write_refund(refund: Refund | None) -> dict[str, Any] | None:
    if refund is None:
        return None
    return {
        "state": str(refund.state),
        "amount": number(refund.amount_units),
        "transaction": refund.tx_hash,
    }


def _write_result(task: Task, links: Sequence[str]) -> dict[str, Any] | None:
    if task.result is None:
        return None
    outputs = task.result.outputs
    if links:
        shown = [_write_output(output, link) for output, link in zip(outputs, links, strict=True)]
    else:
        shown = [_write_output(output, None) | {"expired": True} for output in outputs]
    return {"outputs": shown, "text": task.result.text}


def _write_output(output: StoredOutput, link: str | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "url": link,
        "mimeType": output.media_type,
        "bytes": output.size_bytes,
        "sha256": output.sha256,
    }
    if output.width is not None:
        shown |= {"width": output.width, "height": output.height}
    return shown


# Polls repeat the same times. The cache takes 200 KB.
@functools.lru_cache(maxsize=1024)
def _write_time(at: float | None) -> str | None:
    """Return Unix seconds as RFC 3339 in UTC."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encode_around_text(body: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return a task's JSON before and after its result's text, with the text's quotes."""
    # JSON escapes control characters, so this one occurs nowhere else.
    result = body["result"] | {"text": msgspec.Raw(b'"\0"')}
    before, after = encode({**body, "result": result}).split(b"\0")
    return before, after


def dumps(body: Mapping[str, Any]) -> str:
    """Return compact JSON."""
    return encode(body).decode()


def encode(body: Mapping[str, Any]) -> bytes:
    """Return compact JSON in UTF-8."""
    return msgspec.json.encode(body)


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
            "progress": number | {"description": "From 0 to 1."},
            "attempt": {"type": "integer"},
            "maxAttempts": {"type": "integer"},
            "pollAfterSeconds": number,
            **dict.fromkeys(("createdAt", "startedAt", "completedAt", "expiresAt"), time),
            "decidedBy": time
            | {"description": "Only while the payment is open: by when it is decided."},
            "payment": _payment_schema(),
            "result": _result_schema(),
            **dict.fromkeys(("error", "code", "details"), text),
            "refund": {
                "type": ["object", "null"],
                "properties": {
                    "state": {"type": "string"},
                    "amount": {"type": "number", "description": "USDC."},
                    "transaction": text,
                },
            },
        },
        "required": ["taskId", "status", "done", "payment", "result", "error", "refund"],
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
