"""Lists and details as on the pages, backups, and marks of transfers."""

from http import HTTPStatus

from quart import Response, request

from gateway.errors import WrongValue
from gateway.web.front.current import current_gateway
from gateway_backups.records import Kind
from gateway_operator.actions.transfers import mark_seen, parse_log
from gateway_operator.api.frame import (
    API,
    answer,
    page_asked_for,
    read_body,
    text_of,
    to_json,
)
from gateway_operator.books.export import line_row, line_rows
from gateway_operator.desk import backups
from gateway_operator.desk.all_payments import list_payments, make_payment_filter, read_buyer
from gateway_operator.desk.machine import read_machine
from gateway_operator.desk.overview import DEFAULT_PERIOD, read_overview
from gateway_operator.desk.payments import read_payments, read_unused
from gateway_operator.desk.references import find_id
from gateway_operator.desk.refunds_list import read_refunds
from gateway_operator.desk.tasks import find_task, list_tasks, make_filter
from gateway_operator.pages import payments, tasks
from gateway_operator.pages.books import answer_csv, read_asked_span, read_books
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import actor, is_fresh, needs_scope
from gateway_operator.state import operator


@blueprint.get(f"{API}/refunds")
@needs_scope("read")
async def api_refunds() -> Response:
    """Return the refunds of a kind, with the sums of all kinds."""
    before, _ = page_asked_for()
    kind = request.args.get("state", "undecided")
    return answer(await read_refunds(operator().desk, kind, before))


@blueprint.get(f"{API}/tasks")
@needs_scope("read")
async def api_tasks() -> Response:
    """Return the newest tasks that match the filter."""
    given, desk = await tasks.read_filter(), operator().desk
    before = await find_id(desk, request.args.get("before", ""))
    return answer(await list_tasks(desk, make_filter(**given, before=before)))


@blueprint.get(f"{API}/tasks/<task_id>")
@needs_scope("read")
async def api_task(task_id: str) -> Response:
    """Return one task, without its prompt and links to its outputs."""
    desk = operator().desk
    return answer(await find_task(desk, await find_id(desk, task_id)))


@blueprint.get(f"{API}/payments")
@needs_scope("read")
async def api_payments() -> Response:
    """Return open and overpaid payments, and a page of all that match the filter."""
    desk = operator().desk
    given, before = await payments.read_filter(), request.args.get("before", "")
    listed = await list_payments(desk, make_payment_filter(**given, before=before))
    return answer(
        to_json(await read_payments(desk))
        | {"payments": listed.payments, "nextBefore": listed.next_before}
    )


@blueprint.get(f"{API}/buyer")
@needs_scope("read")
async def api_buyer() -> Response:
    """Return the purchases of the payer `payer`."""
    return answer(await read_buyer(operator().desk, request.args.get("payer", "")))


@blueprint.get(f"{API}/transfers/unclaimed")
@needs_scope("read")
async def api_unused() -> Response:
    """Return the unused transfers of seven days, as of the last search."""
    return answer(await read_unused(operator().desk))


@blueprint.post(f"{API}/transfers/<tx_hash>/<log_index>/seen")
@needs_scope("act")
async def api_seen(tx_hash: str, log_index: str) -> Response:
    """Mark a transfer as seen, with a reason."""
    body = await read_body("reason", needed=["reason"])
    reason = text_of(body, "reason")
    log = parse_log(log_index)
    desk = operator().desk
    await mark_seen(desk, actor(), tx_hash, log, reason=reason, is_fresh=is_fresh())
    return answer({"seen": True})


@blueprint.get(f"{API}/system")
@needs_scope("read")
async def api_system() -> Response:
    """Return the machine: keys, chain, disk, backups, and settings without secrets."""
    return answer(await read_machine(operator().desk))


@blueprint.get(f"{API}/actions")
@needs_scope("read")
async def api_actions() -> Response:
    """Return the audit log, newest first, `before` an id."""
    before, limit = page_asked_for()
    subject, action = request.args.get("subject"), request.args.get("action")
    if subject is not None:
        subject = await find_id(operator().desk, subject)
    found = await operator().desk.records.actions(before, limit, subject, action)
    following = found[-1].id if len(found) == limit else None
    return answer({"actions": found, "before": following})


@blueprint.get(f"{API}/books")
@needs_scope("read")
async def list_books() -> Response:
    """Return the books of `from` to `to` by `day` or `endpoint`; as CSV also by `sale`."""
    span, by = read_asked_span(), request.args.get("by", "day")
    shape = request.args.get("format", "json")
    if shape == "csv":
        return await answer_csv(span, by)
    if shape != "json":
        raise WrongValue("format must be json or csv.")
    found = await read_books(operator().desk, span, by)
    return answer(
        {
            "from": span.first.isoformat(),
            "to": span.last.isoformat(),
            "lines": line_rows(found, by),
            "total": line_row(found.total, by),
        }
    )


@blueprint.get(f"{API}/overview")
@needs_scope("read")
async def api_overview() -> Response:
    """Return the overview of the period `range`."""
    return answer(await read_overview(operator().desk, request.args.get("range", DEFAULT_PERIOD)))


@blueprint.get(f"{API}/backups")
@needs_scope("read")
async def api_backups() -> Response:
    """Return the status of backups and drills, without a request to the bucket."""
    return answer(await backups.status(operator().desk))


@blueprint.post(f"{API}/backups")
@needs_scope("act")
async def api_back_up() -> Response:
    """Start a backup."""
    return await _begin("backup")


@blueprint.post(f"{API}/drills")
@needs_scope("act")
async def api_drill() -> Response:
    """Start a drill."""
    return await _begin("drill")


async def _begin(kind: Kind) -> Response:
    await read_body()
    await backups.begin(operator().desk, backups.of(current_gateway()), actor(), kind)
    return answer({"begun": kind}, HTTPStatus.ACCEPTED)
