"""Health: is the process alive, and may it sell."""

from typing import Any

from quart import Blueprint

from gateway.errors import GatewayError
from gateway.services import Services, services
from gateway.version import VERSION

blueprint = Blueprint("health", __name__)


@blueprint.get("/api/health")
async def health() -> dict[str, Any]:
    """Answer while the loop and the database writer do; never asks the chain (spec §4.6)."""
    gateway = services()
    await gateway.store.ping()
    depth = await gateway.store.queue_depth()
    return {
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


@blueprint.get("/api/ready")
async def ready() -> tuple[dict[str, Any], int]:
    """Tell check by check whether the gateway may sell; 503 where nothing can be sold."""
    gateway = services()
    checks = [
        await _check("database", gateway.store.ping(), stops="everything"),
        _disk(gateway),
        _row("draining", not gateway.condition.is_draining, "shutting down", stops="everything"),
        await _check("rpc", gateway.chain.head(), stops="paid routes"),
        await _check("settlement", gateway.settlements.check_ready(), stops="x402"),
    ]
    stopped = any(not row["ok"] and row["stops"] == "everything" for row in checks)
    return {"ready": not stopped, "checks": checks}, 503 if stopped else 200


def _row(name: str, ok: bool, problem: str, *, stops: str) -> dict[str, Any]:  # noqa: FBT001 - a row's own fact
    return {"name": name, "ok": ok, "stops": stops, "problem": None if ok else problem}


async def _check(name: str, check: Any, *, stops: str) -> dict[str, Any]:
    try:
        await check
    except GatewayError as error:
        return _row(name, ok=False, problem=error.message, stops=stops)
    return _row(name, ok=True, problem="", stops=stops)


def _disk(gateway: Services) -> dict[str, Any]:
    free, needed = gateway.condition.free_disk_mb(), gateway.settings.min_free_disk_mb
    problem = f"{free:.0f} MB free, {needed} MB needed"
    return _row("disk", free >= needed, problem, stops="everything")
