"""Health: is the process alive, and may it sell."""

from collections.abc import Awaitable, Sequence
from http import HTTPStatus
from typing import Any

from quart import Blueprint

from gateway.errors import GatewayError
from gateway.plugins.upstream import Upstream
from gateway.version import VERSION
from gateway.web.readiness import Check
from gateway.web.services import Services, services

_EVERYTHING = "everything"  # what such a check stops
_MAX_PROBLEM_CHARS = 500
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
    """Tell check by check whether the gateway may sell; 503 where nothing can be sold.

    Strangers read fixed sentences; what was found is for the operator, at /admin/ready.
    """
    found = await checks(services())
    status = status_of(found)
    rows = [check.for_strangers() for check in found]
    return {"ready": status == HTTPStatus.OK, "checks": rows}, status


async def checks(gateway: Services) -> list[Check]:
    """Return every check; those that ask the chain or the disk may be some seconds old."""
    asked = await gateway.shared_checks.get(lambda: _asked(gateway))
    return [_draining(gateway), _disk(gateway), _wallet(gateway), *asked, *_off_sale(gateway)]


def status_of(found: Sequence[Check]) -> int:
    """Return 503 where something stops everything, else 200."""
    stopped = any(not check.ok and check.stops == _EVERYTHING for check in found)
    return HTTPStatus.SERVICE_UNAVAILABLE if stopped else HTTPStatus.OK


async def _asked(gateway: Services) -> list[Check]:
    return [
        await _check(
            "database",
            gateway.store.ping(),
            stops=_EVERYTHING,
            summary="The database does not take writes.",
        ),
        await _check(
            "rpc",
            gateway.chain.head(),
            stops="paid routes",
            summary="No RPC endpoint answers as it should.",
        ),
        await _check(
            "settlement",
            gateway.settlements.check_ready(),
            stops="x402",
            summary="x402 payments cannot be settled now.",
        ),
    ]


async def _check(name: str, check: Awaitable[Any], *, stops: str, summary: str) -> Check:
    try:
        await check
    except GatewayError as error:
        problem = f"{error.message} ({error.details})" if error.details else error.message
        return Check(name=name, ok=False, stops=stops, summary=summary, problem=problem)
    return Check(name=name, ok=True, stops=stops, summary=summary)


def _draining(gateway: Services) -> Check:
    is_open = not gateway.readiness.is_draining
    return Check(name="draining", ok=is_open, stops=_EVERYTHING, summary="shutting down")


def _disk(gateway: Services) -> Check:
    free, needed = gateway.readiness.free_disk_mb(), gateway.settings.min_free_disk_mb
    return Check(
        name="disk",
        ok=free >= needed,
        stops=_EVERYTHING,
        summary="The disk is nearly full.",
        problem=f"{free:.0f} MB free, {needed} MB needed",
    )


def _wallet(gateway: Services) -> Check:
    """Return whether the wallet may be paid; what is not known yet is no problem of its own."""
    problem = gateway.wallet.problem
    return Check(
        name="wallet",
        ok=problem is None,
        stops=_EVERYTHING,
        summary="The wallet cannot be paid.",
        problem=problem or "",
    )


def _off_sale(gateway: Services) -> list[Check]:
    """Return a check for each provider that is not asked now; what it stops are its endpoints."""
    return [
        Check(
            name=f"provider {upstream.provider.name}",
            ok=False,
            stops=", ".join(_slugs(upstream, gateway)),
            summary="off sale",
            problem=f"off sale: {upstream.circuit.problem}",
        )
        for upstream in gateway.catalog.on_sale()
        if upstream.circuit.problem is not None
    ]


def _slugs(upstream: Upstream, gateway: Services) -> list[str]:
    catalog = gateway.catalog
    mine = [one.endpoint.slug for one in catalog.everything() if one.upstream is upstream]
    return [slug for slug in mine if catalog.is_enabled(slug)]


def for_operator(found: Sequence[Check], gateway: Services) -> list[dict[str, Any]]:
    """Return the rows as the operator reads them: what was found, without secrets."""
    rows = [check.for_operator() for check in found]
    for row in rows:
        if row["problem"] is not None:
            row["problem"] = gateway.redactor.clean(row["problem"])[:_MAX_PROBLEM_CHARS]
    return rows
