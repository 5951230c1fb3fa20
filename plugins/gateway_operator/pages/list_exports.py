"""The lists as CSV files."""

from collections.abc import AsyncIterator

from quart import Response, request

from gateway.web.front.answers import NOT_STORED
from gateway_operator.desk import list_exports
from gateway_operator.desk.all_payments import make_payment_filter
from gateway_operator.desk.list_exports import Export
from gateway_operator.desk.overview import DEFAULT_PERIOD
from gateway_operator.desk.tasks import make_filter
from gateway_operator.pages import endpoints, payments, tasks
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import actor, needs_session
from gateway_operator.state import operator


@blueprint.get("/admin/payments/export.csv")
@needs_session
async def payments_as_csv() -> Response:
    """Send the payments that match the filter of the page."""
    given = await payments.read_filter()
    wanted = make_payment_filter(**given)
    return await _send(list_exports.export_payments(operator().desk, wanted, given))


@blueprint.get("/admin/tasks/export.csv")
@needs_session
async def tasks_as_csv() -> Response:
    """Send the tasks that match the filter of the page."""
    given = await tasks.read_filter()
    return await _send(list_exports.export_tasks(operator().desk, make_filter(**given), given))


@blueprint.get("/admin/refunds/export.csv")
@needs_session
async def refunds_as_csv() -> Response:
    """Send the refunds of one tab."""
    kind = request.args.get("state", "undecided")
    return await _send(list_exports.export_refunds(operator().desk, kind))


@blueprint.get("/admin/payments/unused.csv")
@needs_session
async def unused_as_csv() -> Response:
    """Send the unused transfers."""
    return await _send(list_exports.export_unused(operator().desk))


@blueprint.get("/admin/endpoints/export.csv")
@needs_session
async def endpoints_as_csv() -> Response:
    """Send the endpoints that match the search, with their sales of a period."""
    period, typed = request.args.get("range", DEFAULT_PERIOD), endpoints.read_search()
    return await _send(await list_exports.export_endpoints(operator().desk, period, typed))


async def _send(export: Export) -> Response:
    pieces = await list_exports.begin_export(operator().desk, actor(), export)
    headers = {
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{export.name}.csv"',
        **NOT_STORED,
    }
    return Response(_as_bytes(pieces), headers=headers)


async def _as_bytes(pieces: AsyncIterator[str]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield piece.encode()
