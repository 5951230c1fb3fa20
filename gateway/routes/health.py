"""Health: is the process alive, and may it sell."""

from typing import Any

from quart import Blueprint

from gateway.errors import GatewayError
from gateway.services import Services, services
from gateway.upstream import Upstream
from gateway.version import VERSION

_SECRET_CHARS = 8  # no key is shorter
_MAX_PROBLEM_CHARS = 200
blueprint = Blueprint("health", __name__)


@blueprint.get("/api/health")
async def health() -> dict[str, Any]:
    """Answer while the loop and the database writer do; never asks the chain (spec §4.6)."""
    gateway = services()
    await gateway.store.ping()
    depth = await gateway.store.queue.depth()
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
        _wallet(gateway),
        await _check("rpc", gateway.chain.head(), stops="paid routes"),
        await _check("settlement", gateway.settlements.check_ready(), stops="x402"),
        *_off_sale(gateway),
    ]
    stopped = any(not row["ok"] and row["stops"] == "everything" for row in checks)
    return {"ready": not stopped, "checks": checks}, 503 if stopped else 200


def _row(name: str, ok: bool, problem: str, *, stops: str) -> dict[str, Any]:  # noqa: FBT001 - a row's own fact
    return {"name": name, "ok": ok, "stops": stops, "problem": None if ok else problem}


def _wallet(gateway: Services) -> dict[str, Any]:
    """Return whether the wallet may be paid; what is not known yet is no problem of its own."""
    problem = gateway.wallet.problem
    return _row("wallet", problem is None, problem or "", stops="everything")


def _off_sale(gateway: Services) -> list[dict[str, Any]]:
    """Return a row for each provider that is not asked now; what it stops are its endpoints."""
    return [
        _row(
            f"provider {upstream.provider.name}",
            ok=False,
            problem=f"off sale: {_without_secrets(upstream.circuit.problem, gateway)}",
            stops=", ".join(_slugs(upstream, gateway)),
        )
        for upstream in gateway.catalog.on_sale()
        if upstream.circuit.problem is not None
    ]


def _slugs(upstream: Upstream, gateway: Services) -> list[str]:
    catalog = gateway.catalog
    mine = [one.endpoint.slug for one in catalog.everything() if one.upstream is upstream]
    return [slug for slug in mine if catalog.is_enabled(slug)]


def _without_secrets(problem: str, gateway: Services) -> str:
    """Return a plugin's words without a value of a plugin's settings: some quote their key."""
    for value in gateway.settings.plugin_values.values():
        if isinstance(value, str) and len(value) >= _SECRET_CHARS:
            problem = problem.replace(value, "…")
    return problem[:_MAX_PROBLEM_CHARS]


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
