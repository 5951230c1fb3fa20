"""The readiness checks of `/api/ready`."""

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from http import HTTPStatus
from typing import Any

import attrs
import structlog

from gateway.catalog.upstream import Upstream
from gateway.contracts import Selling
from gateway.contracts.parts import Check
from gateway.errors import DiskFull, GatewayError
from gateway.running.gateway import Gateway

# Values of `Check.stops`.
_EVERYTHING = "everything"
_PAID_ROUTES = "paid routes"
_NOTHING = "nothing"
_MAX_PROBLEM_CHARS = 500
# Timeout of one part's checks, in seconds.
_PART_S = 5.0
_log = structlog.get_logger()


def find_selling(gateway: Gateway, stopped: Collection[str]) -> Selling:
    """Return the purchases possible now; `stopped` is `Check.stops` of the failed checks."""
    if gateway.selling == "nothing" or _EVERYTHING in stopped or _PAID_ROUTES in stopped:
        return "nothing"
    return "transfers" if "x402" in stopped else gateway.selling


async def checks(gateway: Gateway) -> list[Check]:
    """Return all checks. Those of the chain, the database and parts may be some seconds old."""
    shared = await gateway.shared_checks.get(lambda: _run_shared(gateway))
    return [
        _check_draining(gateway),
        *_check_roles(gateway),
        *_check_wakes(gateway),
        _check_disk(gateway),
        _check_wallet(gateway),
        *shared,
        *_check_providers(gateway),
        *_check_models(gateway),
    ]


def status_of(found: Sequence[Check]) -> int:
    """Return 503 if a failed check stops everything, else 200."""
    stopped = any(not check.ok and check.stops == _EVERYTHING for check in found)
    return HTTPStatus.SERVICE_UNAVAILABLE if stopped else HTTPStatus.OK


async def _check_parts(gateway: Gateway) -> list[Check]:
    """Return the parts' checks. A part that raises gets a failed check."""
    found: list[Check] = []
    for part in gateway.lifecycle.parts:
        if part.checks is None:
            continue
        try:
            async with asyncio.timeout(_PART_S):
                found += await part.checks()
        except Exception:  # noqa: BLE001 - a plugin may raise anything
            _log.exception("part.failed", part=part.name, step="checks")
            summary = "This check failed."
            found.append(Check(name=part.name, ok=False, stops=_NOTHING, summary=summary))
    return found


async def _run_shared(gateway: Gateway) -> list[Check]:
    database = await _check_call(
        "database",
        gateway.store.check_writable(),
        stops=_EVERYTHING,
        summary="The database does not take writes.",
    )
    rpc = await _check_call(
        "rpc",
        gateway.chain.head(),
        stops=_PAID_ROUTES,
        summary="No RPC endpoint gives a usable answer.",
    )
    settlement = await _check_call(
        "settlement",
        gateway.settlements.obstacles.check(),
        stops="x402",
        summary="x402 payments cannot be settled now.",
    )
    if gateway.settlements.obstacles.selling == "nothing":
        settlement = attrs.evolve(settlement, stops=_PAID_ROUTES)
    return [database, rpc, settlement, *await _check_parts(gateway)]


async def _check_call(name: str, call: Awaitable[Any], *, stops: str, summary: str) -> Check:
    try:
        await call
    except GatewayError as error:
        # The message is for buyers, the details for the operator.
        found = error.details or error.message
        if isinstance(error, DiskFull):
            found = f"{error.remedy}."
        return Check(name=name, ok=False, stops=stops, summary=summary, problem=found)
    return Check(name=name, ok=True, stops=stops, summary=summary)


def _check_draining(gateway: Gateway) -> Check:
    is_open = not gateway.readiness.is_draining
    return Check(name="draining", ok=is_open, stops=_EVERYTHING, summary="The gateway is stopping.")


def _check_roles(gateway: Gateway) -> list[Check]:
    """Check that this node sells and that a node runs tasks. No checks on a single machine."""
    if not gateway.store.nodes.has_others:
        return []
    sells, works = "web" in gateway.settings.roles, gateway.store.nodes.has_workers
    return [
        Check(name="role", ok=sells, stops=_EVERYTHING, summary="This machine sells nothing."),
        Check(
            name="workers", ok=works, stops=_EVERYTHING, summary="No machine makes what is sold."
        ),
    ]


def _check_wakes(gateway: Gateway) -> list[Check]:
    """Check that other nodes' notifications arrive. No check on a single machine."""
    wakes = gateway.store.wakes
    if wakes is None:
        return []
    summary = "This node polls for the others' tasks, because it gets no notifications."
    return [Check(name="wakes", ok=wakes.is_live, stops=_NOTHING, summary=summary)]


def _check_disk(gateway: Gateway) -> Check:
    problem = gateway.readiness.read_disk().problem
    return Check(
        name="disk",
        ok=problem is None,
        stops=_EVERYTHING,
        summary="The disk is full, or nearly so.",
        problem=problem or "",
    )


def _check_wallet(gateway: Gateway) -> Check:
    """Check the wallet. It counts as valid until the chain has answered."""
    problem = gateway.wallet.problem
    return Check(
        name="wallet",
        ok=problem is None,
        stops=_EVERYTHING,
        summary="Payments to the wallet's address may be lost.",
        problem=problem or "",
    )


def _check_providers(gateway: Gateway) -> list[Check]:
    """Return a failed check for each provider that is off sale."""
    return [
        Check(
            name=f"provider {upstream.provider.name}",
            ok=False,
            stops=", ".join(_enabled_slugs(upstream, gateway)),
            summary="off sale",
            problem=f"off sale: {upstream.circuit.problem}",
        )
        for upstream in gateway.catalog.on_sale()
        if upstream.circuit.problem is not None
    ]


def _check_models(gateway: Gateway) -> list[Check]:
    """Return a failed check for each endpoint whose own circuit is open."""
    return [
        Check(
            name=f"endpoint {one.endpoint.slug}",
            ok=False,
            stops=one.endpoint.slug,
            summary="off sale",
            problem=f"off sale: {one.circuit.problem}",
        )
        for one in gateway.catalog.everything()
        if one.circuit.is_open and gateway.catalog.is_enabled(one.endpoint.slug)
    ]


def _enabled_slugs(upstream: Upstream, gateway: Gateway) -> list[str]:
    catalog = gateway.catalog
    mine = [one.endpoint.slug for one in catalog.everything() if one.upstream is upstream]
    return [slug for slug in mine if catalog.is_enabled(slug)]


def for_operator(found: Sequence[Check], gateway: Gateway) -> list[dict[str, Any]]:
    """Return the rows for the operator: with details, without secrets."""
    rows = [check.for_operator() for check in found]
    for row in rows:
        if row["problem"] is not None:
            row["problem"] = gateway.redactor.clean(row["problem"])[:_MAX_PROBLEM_CHARS]
    return rows
