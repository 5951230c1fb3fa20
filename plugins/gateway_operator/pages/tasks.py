"""The pages of tasks."""

import secrets
from urllib.parse import urlencode

from quart import Response, g, request

from gateway.errors import WrongValue
from gateway.web.front.current import current_gateway
from gateway_operator.desk.references import find_id
from gateway_operator.desk.tasks import (
    STATES,
    find_task,
    list_tasks,
    make_filter,
    show_outputs,
    show_prompt,
)
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, needs_session
from gateway_operator.state import operator

_PAGE = "/admin/tasks"
_FIELDS = ("state", "slug", "reason", "payer", "day", "q")


@blueprint.get(_PAGE)
@needs_session
async def show_tasks() -> Response:
    """List the newest tasks that match the filter."""
    desk, given = operator().desk, await read_filter()
    before = await find_id(desk, request.args.get("before", ""))
    wanted = make_filter(**given, before=before)
    page = await list_tasks(desk, wanted)
    chosen = {name: value for name, value in given.items() if value}
    older = urlencode(chosen | {"before": page.next_before}) if page.next_before else ""
    return await render(
        "tasks.html",
        page="tasks",
        p=page,
        given=given,
        is_filtered=bool(chosen),
        is_first=not wanted.before,
        newest=urlencode(chosen),
        older=older,
        states=STATES,
    )


async def read_filter() -> dict[str, str]:
    """Return the filter of the page's address, which its CSV has too."""
    given = {name: request.args.get(name, "") for name in _FIELDS}
    # Links from other pages use `status`.
    given["state"] = given["state"] or request.args.get("status", "")
    given["q"] = await find_id(operator().desk, given["q"])
    return given


@blueprint.get(f"{_PAGE}/<task_id>")
@needs_session
async def show_task(task_id: str) -> Response:
    """Show one task without its prompt and outputs."""
    desk = operator().desk
    detail = await find_task(desk, await find_id(desk, task_id))
    # A vendor's id gives no access here.
    g.whole_ids = detail.facts.job_id or ""
    return await render("task.html", page="tasks", d=detail, request_key=secrets.token_urlsafe(12))


@blueprint.post(f"{_PAGE}/<task_id>/look")
@needs_session
async def show_content(task_id: str) -> Response:
    """Show a task's prompt or outputs, and record the access."""
    gateway, form = current_gateway(), g.form
    task_id = await find_id(operator().desk, task_id)
    # Links to outputs contain the id, and this access is recorded.
    g.shows_ids = True
    reason, what = form.get("reason", ""), form.get("what", "")
    if what == "prompt":
        shown = await show_prompt(operator().desk, actor(), task_id, reason=reason)
    elif what == "outputs":
        shown = await show_outputs(
            operator().desk, gateway.output_store, actor(), task_id, reason=reason
        )
    else:
        raise WrongValue("Choose the prompt or the outputs.")
    return await render("task_content.html", page="tasks", shown=shown, what=what)
