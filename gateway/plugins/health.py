"""Asks providers how they are: all after the start, those off sale until they work again."""

import asyncio

import structlog

from gateway.contracts import Probing
from gateway.errors import AccountProblem
from gateway.plugins.catalog import Catalog
from gateway.plugins.upstream import Upstream

_LOOK_S = 2.0  # between two looks at who is due
_TIMEOUT_S = 15.0  # of one probe
_log = structlog.get_logger()


async def probe_forever(catalog: Catalog) -> None:
    """Probe every provider on sale once, and later those whose circuit is open and due."""
    await asyncio.gather(*(_first(upstream) for upstream in catalog.on_sale()))
    while True:
        due = [upstream for upstream in catalog.on_sale() if upstream.circuit.is_due]
        await asyncio.gather(*(_again(upstream) for upstream in due))
        await asyncio.sleep(_LOOK_S)


async def problem_of(upstream: Upstream) -> str | None:
    """Return what is wrong with a provider by its own account; None where nothing is known."""
    error = await _error_of(upstream)
    return _said(error, upstream) if error is not None else None


async def _error_of(upstream: Upstream) -> Exception | None:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await upstream.probe()
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return error
    return None


async def _first(upstream: Upstream) -> None:
    """Take off sale what cannot work: a wrong key is found before anybody pays."""
    if not isinstance(upstream.provider, Probing):
        return
    error = await _error_of(upstream)
    if isinstance(error, AccountProblem):
        upstream.circuit.trip(_said(error, upstream))
    elif error is not None:
        _log.warning(
            "provider.unwell", provider=upstream.provider.name, error=_said(error, upstream)
        )


async def _again(upstream: Upstream) -> None:
    """Put back on sale what works again; one that cannot be asked is tried by the next buyer."""
    error = await _error_of(upstream)
    if error is None:
        upstream.circuit.try_again()
    else:
        upstream.circuit.stay_open(_said(error, upstream))


def _said(error: Exception, upstream: Upstream) -> str:
    """Return an error in words; many have none of their own."""
    return f"{type(error).__name__}: {upstream.sentence(error)}".removesuffix(": ")
