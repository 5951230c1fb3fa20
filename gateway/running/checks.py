"""The readiness checks of `/api/ready`."""

from collections.abc import Awaitable, Collection, Iterator, Sequence
from http import HTTPStatus
from typing import Any

import attrs

from gateway.contracts import Selling
from gateway.contracts.parts import Check
from gateway.errors import DiskFull, GatewayError
from gateway.running.facts_of_parts import find_checks
from gateway.running.gateway import Gateway

# Values of `Check.stops`.
_EVERYTHING = "everything"
_PAID_ROUTES = "paid routes"
_NOTHING = "nothing"
_MAX_PROBLEM_CHARS = 500


def find_selling(gateway: Gateway, stopped: Collection[str]) -> Selling:
    """Return the purchases possible now; `stopped` is `Check.stops` of the failed checks."""
    if gateway.selling == "nothing" or _EVERYTHING in stopped or _PAID_ROUTES in stopped:
        return "nothing"
    return "transfers" if "x402" in stopped else gateway.selling


async def checks(gateway: Gateway) -> list[Check]:
    """Return all checks. Those of the chain, the database and parts may be some seconds old."""
    shared = await gateway.shared_checks.get(lambda: _run_shared(gateway))
    readiness = gateway.readiness
    return [
        _check_machine("draining", "The gateway is stopping.", ok=not readiness.is_draining),
        *_check_nodes(gateway),
        _check_fact("disk", "The disk is full, or nearly so.", readiness.read_disk().problem),
        # The wallet counts as valid until the chain has answered.
        _check_fact(
            "wallet", "Payments to the wallet's address may be lost.", gateway.wallet.problem
        ),
        *shared,
        *_check_sales(gateway),
    ]


def _check_machine(name: str, summary: str, *, ok: bool, problem: str = "") -> Check:
    return Check(name=name, ok=ok, stops=_EVERYTHING, summary=summary, problem=problem)


def _check_fact(name: str, summary: str, problem: str | None) -> Check:
    return _check_machine(name, summary, ok=problem is None, problem=problem or "")


def status_of(found: Sequence[Check]) -> int:
    """Return 503 if a failed check stops everything, else 200."""
    stopped = any(not check.ok and check.stops == _EVERYTHING for check in found)
    return HTTPStatus.SERVICE_UNAVAILABLE if stopped else HTTPStatus.OK


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
    return [database, rpc, settlement, *await find_checks(gateway)]


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


def _check_nodes(gateway: Gateway) -> list[Check]:
    """Check roles and notifications of several machines. No checks on a single one."""
    nodes, wakes, found = gateway.store.nodes, gateway.store.wakes, []
    if nodes.has_others:
        sells, works = "web" in gateway.settings.roles, nodes.has_workers
        found = [
            _check_machine("role", "This machine sells nothing.", ok=sells),
            _check_machine("workers", "No machine makes what is sold.", ok=works),
        ]
    if wakes is not None:
        summary = "This node polls for the others' tasks, because it gets no notifications."
        found.append(Check(name="wakes", ok=wakes.is_live, stops=_NOTHING, summary=summary))
    return found


def _check_sales(gateway: Gateway) -> Iterator[Check]:
    """Yield a failed check for each provider or endpoint that is off sale by a fault."""
    catalog = gateway.catalog
    sold = [one for one in catalog.everything() if catalog.is_enabled(one.endpoint.slug)]
    for upstream in catalog.enabled_upstreams():
        if upstream.circuit.problem is not None:
            own = (one for one in sold if one.upstream is upstream and not one.sells_now)
            slugs = ", ".join(one.endpoint.slug for one in own)
            yield _off_sale(f"provider {upstream.provider.name}", slugs, upstream.circuit.problem)
    for one in sold:
        if one.unchecked or one.circuit.is_open:
            slug = one.endpoint.slug
            stops = "" if one.sells_now else slug
            yield _off_sale(f"endpoint {slug}", stops, one.unchecked or one.circuit.problem)


def _off_sale(name: str, stops: str, problem: str | None) -> Check:
    """Return the failed check; `stops` are the slugs that no fallback makes."""
    text = f"off sale: {problem}"
    return Check(name=name, ok=False, stops=stops or _NOTHING, summary="off sale", problem=text)


def for_operator(found: Sequence[Check], gateway: Gateway) -> list[dict[str, Any]]:
    """Return the rows for the operator: with details, without secrets."""
    rows = [check.for_operator() for check in found]
    for row in rows:
        if row["problem"] is not None:
            row["problem"] = gateway.redactor.clean(row["problem"])[:_MAX_PROBLEM_CHARS]
    return rows
