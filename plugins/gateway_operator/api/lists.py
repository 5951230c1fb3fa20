"""What the pages show as JSON: refunds, tasks, payments, unused transfers, the machine."""

from quart import Response, request

from gateway_operator.actions.transfers import mark_seen, parse_log
from gateway_operator.api.frame import API, answer, page_asked_for, read_body, text_of
from gateway_operator.desk.machine import read_machine
from gateway_operator.desk.payments import read_payments, read_unclaimed
from gateway_operator.desk.references import find_id
from gateway_operator.desk.refunds_list import read_refunds
from gateway_operator.desk.tasks import find_task, list_tasks, make_filter
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import actor, needs_scope
from gateway_operator.state import operator

_FILTERS = ("state", "slug", "reason", "payer", "day", "q", "before")


@blueprint.get(f"{API}/refunds")
@needs_scope("read")
async def api_refunds() -> Response:
    """Return the refunds of a kind, with the sums above them."""
    before, _ = page_asked_for()
    kind = request.args.get("state", "undecided")
    return answer(await read_refunds(operator().desk, kind, before))


@blueprint.get(f"{API}/tasks")
@needs_scope("read")
async def api_tasks() -> Response:
    """Return the newest tasks that the filter lets through."""
    given = {name: request.args.get(name, "") for name in _FILTERS}
    given["state"] = given["state"] or request.args.get("status", "")
    for name in ("q", "before"):
        given[name] = await find_id(operator().desk, given[name])
    return answer(await list_tasks(operator().desk, make_filter(**given)))


@blueprint.get(f"{API}/tasks/<task_id>")
@needs_scope("read")
async def api_task(task_id: str) -> Response:
    """Return all about one task, but neither its prompt nor links to its outputs."""
    desk = operator().desk
    return answer(await find_task(desk, await find_id(desk, task_id)))


@blueprint.get(f"{API}/payments")
@needs_scope("read")
async def api_payments() -> Response:
    """Return payments that are open, and those that paid too much."""
    return answer(await read_payments(operator().desk))


@blueprint.get(f"{API}/transfers/unclaimed")
@needs_scope("read")
async def api_unclaimed() -> Response:
    """Return the transfers of seven days that bought nothing, as of the last look."""
    return answer(await read_unclaimed(operator().desk))


@blueprint.post(f"{API}/transfers/<tx_hash>/<log_index>/seen")
@needs_scope("act")
async def api_seen(tx_hash: str, log_index: str) -> Response:
    """Mark a transfer as seen, for a reason."""
    body = await read_body("reason", needed=["reason"])
    reason = text_of(body, "reason")
    log = parse_log(log_index)
    await mark_seen(operator().desk, actor(), tx_hash, log, reason=reason)
    return answer({"seen": True})


@blueprint.get(f"{API}/system")
@needs_scope("read")
async def api_system() -> Response:
    """Return the machine: keys, chain, disk, copies, and settings without secrets."""
    return answer(await read_machine(operator().desk))
