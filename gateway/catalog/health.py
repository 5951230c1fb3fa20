"""Health checks of providers: all after the start, those off sale until they work again."""

import asyncio

import structlog

from gateway.catalog.catalog import Catalog
from gateway.catalog.circuit_breaker import CircuitBreaker
from gateway.catalog.notes import begin_notes, newest_refusal, summarize
from gateway.catalog.registered import Registered
from gateway.catalog.upstream import Upstream
from gateway.contracts import Probing
from gateway.errors import AccountProblem

# Interval between checks for circuits that are due.
_CHECK_S = 2.0
# Of one probe.
TIMEOUT_S = 15.0
# Of the vendor's message, for the operator.
_MAX_MESSAGE_CHARS = 200
_log = structlog.get_logger()


async def probe_forever(
    catalog: Catalog, *, check_s: float = _CHECK_S, timeout_s: float = TIMEOUT_S
) -> None:
    """Probe every provider on sale once, then each open circuit when it is due.

    `check_s` is the interval between checks for due circuits, `timeout_s` the timeout of one probe.
    """
    await asyncio.gather(*(probe_new(one, timeout_s) for one in catalog.enabled_upstreams()))
    while True:
        due = [upstream for upstream in catalog.enabled_upstreams() if upstream.circuit.is_due]
        models = [one for one in catalog.everything() if one.circuit.is_due]
        await asyncio.gather(
            *(_probe_open_circuit(one.circuit, one, timeout_s) for one in due),
            # The next buyer's task tries a model again if its provider works.
            *(_probe_open_circuit(one.circuit, one.upstream, timeout_s) for one in models),
        )
        await asyncio.sleep(check_s)


async def error_of(upstream: Upstream, timeout_s: float = TIMEOUT_S) -> Exception | None:
    """Probe a provider and return the error, if any."""
    begin_notes()
    try:
        async with asyncio.timeout(timeout_s):
            await upstream.probe()
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return error
    return None


async def problem_of(upstream: Upstream, *, timeout_s: float = TIMEOUT_S) -> str | None:
    """Probe a provider and describe the error; None if it works or has no `health`."""
    error = await error_of(upstream, timeout_s)
    return _describe_error(error, upstream) if error is not None else None


async def probe_now(registered: Registered, *, timeout_s: float = TIMEOUT_S) -> str | None:
    """Probe a provider at the operator's request; returns the problem, or None.

    If it works, provider and endpoint go back on sale.
    """
    upstream = registered.upstream
    if upstream.circuit.is_open:
        await _probe_open_circuit(upstream.circuit, upstream, timeout_s)
        problem = upstream.circuit.problem
    else:
        problem = await problem_of(upstream, timeout_s=timeout_s)
    if problem is None and registered.circuit.is_open:
        registered.circuit.try_again()
    return problem


async def probe_new(upstream: Upstream, timeout_s: float = TIMEOUT_S) -> None:
    """Take a provider with a bad account off sale before a buyer pays for it."""
    if not isinstance(upstream.provider, Probing):
        return
    error = await error_of(upstream, timeout_s)
    if error is None:
        return
    description = _describe_error(error, upstream)
    if isinstance(error, AccountProblem):
        upstream.circuit.trip(description, is_account=True)
    else:
        _log.warning("provider.unhealthy", provider=upstream.provider.name, error=description)


async def _probe_open_circuit(
    circuit: CircuitBreaker, upstream: Upstream, timeout_s: float
) -> None:
    """Close a circuit if the provider works again, or if it has no `health` to check."""
    error = await error_of(upstream, timeout_s)
    if error is None:
        circuit.try_again()
    else:
        is_account = isinstance(error, AccountProblem) and circuit is upstream.circuit
        circuit.stay_open(_describe_error(error, upstream), is_account=is_account)


def _describe_error(error: Exception, upstream: Upstream) -> str:
    """Return the vendor's message, else the error's class and text."""
    refusal, text = newest_refusal(), upstream.error_text(error)
    if refusal is None:
        return summarize(type(error).__name__, "", text)
    vendor_message = upstream.redactor.clean(refusal.vendor_message)[:_MAX_MESSAGE_CHARS]
    code = upstream.redactor.clean(refusal.vendor_code)
    return summarize(f"status {refusal.status}", code, vendor_message or text)
