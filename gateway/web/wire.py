"""The JSON of a started generation, a task and a webhook."""

import functools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.domain import (
    MAX_ATTEMPTS,
    Flow,
    Payment,
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
_BEFORE_SETTLEMENT = (PaymentState.RESERVED, PaymentState.SETTLING, PaymentState.RELEASED)
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


def task(
    task: Task, *, network: str, links: Sequence[str], refund_words: str = ""
) -> dict[str, Any]:
    """Return the body of `GET /api/task/{taskId}`, without prompt, payer and file.

    `links` has a link for each output; it is empty after the outputs are deleted. `refund_words`
    is the state of the refund in words.
    """
    held = {"decidedBy": _write_time(task.payment.decided_by)}
    return {
        "taskId": task.id,
        "status": _STATUS.get(task.status, str(task.status)),
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
        "payment": _write_payment(task.payment, network),
        "result": _write_result(task, links),
        "error": task.error,
        "code": task.code,
        "details": task.details,
        "refund": _write_refund(task.refund, refund_words),
        **({"model": task.made_model} if task.made_model else {}),
        **({"waitsFor": "memory"} if task.waits_for_memory else {}),
        **(held if task.status is TaskStatus.HELD else {}),
    }


def _write_payment(payment: Payment, network: str) -> dict[str, Any]:
    is_before = payment.state in _BEFORE_SETTLEMENT
    return {
        "flow": payment.method or str(payment.flow),
        # The field `refund` has the states after settlement.
        "state": str(payment.state if is_before else PaymentState.SETTLED),
        "amount": number(payment.paid_units or payment.price_units),
        "network": network,
        "transaction": payment.paid_tx if payment.method is None else None,
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


def _write_refund(refund: Refund | None, words: str) -> dict[str, Any] | None:
    if refund is None:
        return None
    return {
        "state": str(refund.state),
        "amount": number(refund.amount_units),
        "transaction": refund.tx_hash,
        "message": words,
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
    if output.seconds is not None:
        shown["seconds"] = output.seconds
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
