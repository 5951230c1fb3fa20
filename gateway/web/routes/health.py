"""Liveness and readiness."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from gateway.contracts.parts import Check
from gateway.running.checks import checks, find_selling, status_of
from gateway.running.gateway import Gateway
from gateway.version import VERSION
from gateway.web.front.answers import Answer, json_answer
from gateway.web.front.routing import Asked, Route


async def answer_health(gateway: Gateway, _: Asked) -> Answer:
    """Liveness: event loop and database writer work; the chain does not matter (spec §4.6)."""
    await gateway.store.ping()
    depth = await gateway.store.queue.depth()
    body = {
        "status": "ok",
        "version": VERSION,
        "network": gateway.settings.network,
        "uptimeSeconds": round(gateway.now() - gateway.started_at),
        "tasks": {
            "queued": depth.get("queued", 0) + depth.get("held", 0),
            "processing": depth.get("processing", 0),
        },
        "endpoints": len(gateway.catalog),
    }
    return json_answer(body)


async def answer_ready(gateway: Gateway, _: Asked) -> Answer:
    """Readiness: all checks, and the flows on sale; 503 if the machine should get no requests.

    The sentences are fixed, because anyone can read them. /admin/ready has the details.
    """
    found = await checks(gateway)
    return json_answer(*describe(gateway, found, [check.for_public() for check in found]))


def describe(
    gateway: Gateway, found: Sequence[Check], rows: list[dict[str, Any]]
) -> tuple[dict[str, Any], int]:
    """Return body and status of a readiness answer.

    An unavailable chain alone is no 503: buyers can still poll tasks, so a proxy must keep the
    machine.
    """
    status = status_of(found)
    is_ready = status == HTTPStatus.OK
    selling = find_selling(gateway, [check.stops for check in found if not check.ok])
    return {"ready": is_ready, "selling": selling, "checks": rows}, status


ROUTES = (
    Route(method="GET", rule="/api/health", answer=answer_health, skips_quart=True),
    Route(method="GET", rule="/api/ready", answer=answer_ready),
)
