"""Answers: the generation-started response and the task, as the specification writes them."""

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

POLL_S = 2  # the interval the specification advises
_STATUS = {TaskStatus.HELD: "queued", TaskStatus.DROPPED: "failed"}


def number(units: int) -> float:
    """Return units of 10⁻⁶ USDC as the JSON number of USDC."""
    return units / 10**6


def started(task: Task) -> dict[str, Any]:
    """Return the generation-started response (spec §2.3)."""
    body: dict[str, Any] = {
        "success": True,
        "taskId": task.id,
        "statusUrl": f"/api/task/{task.id}",
        "message": "Generation started. Poll statusUrl for the result: "
        "every 2 seconds, or once with ?wait=30.",
    }
    if task.payment.flow is Flow.DIRECT:
        body["paidAmount"] = number(task.payment.paid_units or 0)
    return body


def task(task: Task, *, network: str, links: Sequence[str]) -> dict[str, Any]:
    """Return the body of `GET /api/task/{taskId}`: no prompt, payer or file.

    `links` are one for each output, or none where the outputs are gone.
    """
    status = _STATUS.get(task.status, str(task.status))
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
        "createdAt": _time(task.created_at),
        "startedAt": _time(task.started_at),
        "completedAt": _time(task.completed_at),
        "expiresAt": _time(task.expires_at),
        "payment": {
            "flow": str(task.payment.flow),
            "state": _payment_state(task.payment.state),
            "amount": number(task.payment.paid_units or task.payment.price_units),
            "network": network,
            "transaction": task.payment.paid_tx,
        },
        "result": _result(task, links),
        "error": task.error,
        "code": task.code,
        "details": task.details,
        "refund": _refund(task.refund),
    }


def _payment_state(state: PaymentState) -> str:
    """Return a payment's state; what happens after settlement is told under `refund`."""
    before = (PaymentState.RESERVED, PaymentState.SETTLING, PaymentState.RELEASED)
    return str(state) if state in before else str(PaymentState.SETTLED)


def _refund(refund: Refund | None) -> dict[str, Any] | None:
    if refund is None:
        return None
    return {
        "state": str(refund.state),
        "amount": number(refund.amount_units),
        "transaction": refund.tx_hash,
    }


def _result(task: Task, links: Sequence[str]) -> dict[str, Any] | None:
    if task.result is None:
        return None
    outputs = task.result.outputs
    if links:
        shown = [_output(output, link) for output, link in zip(outputs, links, strict=True)]
    else:
        shown = [_output(output, None) | {"expired": True} for output in outputs]
    return {"outputs": shown, "text": task.result.text}


def _output(output: StoredOutput, link: str | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "url": link,
        "mimeType": output.media_type,
        "bytes": output.size_bytes,
        "sha256": output.sha256,
    }
    if output.width is not None:
        shown |= {"width": output.width, "height": output.height}
    return shown


def _time(at: float | None) -> str | None:
    """Return Unix seconds as RFC 3339 in UTC."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def dumps(body: Mapping[str, Any]) -> str:
    """Return compact JSON."""
    return msgspec.json.encode(body).decode()
