"""The route that shows a task (spec §4.3), once or as a stream of events."""

from typing import Any

from quart import Blueprint, Response, request

from gateway.domain import Task
from gateway.errors import NotFound, ValidationError
from gateway.running.gateway import Gateway
from gateway.running.long_texts import ShownTask
from gateway.tasks.notifications import seconds_to_look
from gateway.web import wire
from gateway.web.front.answers import JSON, NOT_STORED, Answer, Pieces
from gateway.web.front.clients import address, limited
from gateway.web.front.current import current_gateway
from gateway.web.front.event_stream import answer_stream, wants_events

blueprint = Blueprint("tasks", __name__)

TASK_RULE = "/api/task/<task_id>"
TASK_LIMIT = "task"
_MAX_WAIT_S = 30.0
_MAX_ID_CHARS = 64
_HEADERS = JSON | NOT_STORED


@blueprint.get(TASK_RULE)
@limited(TASK_LIMIT)
async def show_task(task_id: str) -> Response:
    """Show a task; with `?wait=N` once it is done, or after N seconds; or stream its changes."""
    wait_s = read_wait_s(request.args.get("wait", "0"))
    if wants_events(request):
        return await answer_stream(
            current_gateway(), request, address(), task_id, _find_task, _encode_task
        )
    answer = await answer_task(current_gateway(), task_id, wait_s, address())
    return answer.to_response(request.method)


async def answer_task(gateway: Gateway, task_id: str, wait_s: float, client: str) -> Answer:
    """Return the answer that shows a task, once it is done or `wait_s` seconds have passed.

    `client` is the address that the request is counted by. Where too many requests wait already,
    the answer comes at once. Raises `NotFound` for an unknown id.
    """
    task = await _look(gateway, task_id, wait_s, client)
    shown = (await _encode_task(gateway, task)).within(b"", b"\n")
    if shown.text is None:
        return Answer(200, shown.before, _HEADERS)
    pieces = Pieces(shown.size, lambda: shown.pieces(gateway.long_texts))
    return Answer(200, b"", _HEADERS, pieces)


async def look_at_task(
    gateway: Gateway, task_id: str, wait_s: float, client: str
) -> tuple[Task, list[str]]:
    """Return a task and a link to each output, as `answer_task` shows them."""
    task = await _look(gateway, task_id, wait_s, client)
    return task, await _make_links(gateway, task)


async def _look(gateway: Gateway, task_id: str, wait_s: float, client: str) -> Task:
    if wait_s > 0:
        with gateway.long_polls.counted(client) as may_wait:
            task = await _wait_for_task(gateway, task_id, wait_s if may_wait else 0.0)
    else:
        task = await _wait_for_task(gateway, task_id, wait_s)
    return task


async def _encode_task(gateway: Gateway, task: Task) -> ShownTask:
    """Return the JSON that shows a task."""
    body = await show_body(gateway, task)
    text = task.result.long_text if task.result is not None else None
    if text is None:
        return ShownTask(task.id, wire.encode(body))
    before, after = wire.encode_around_text(body)
    return ShownTask(task.id, before, text, after)


async def show_body(gateway: Gateway, task: Task) -> dict[str, Any]:
    """Return the body that shows a task without a long text, with fresh links to its outputs."""
    links = await _make_links(gateway, task)
    return wire.task(task, network=gateway.settings.network, links=links)


async def _wait_for_task(gateway: Gateway, task_id: str, wait_s: float) -> Task:
    """Return the task once it is done, or as it is after `wait_s` seconds.

    Raises `NotFound` for an unknown id.
    """
    if wait_s <= 0:
        return await _find_task(gateway, task_id)
    deadline = gateway.now() + wait_s
    with gateway.notifications.subscribed(task_id) as subscription:
        while True:
            task = await _find_task(gateway, task_id)
            left_s = deadline - gateway.now()
            if task.is_done or left_s <= 0 or gateway.readiness.is_drained:
                return task
            await subscription.wait(min(left_s, seconds_to_look(gateway.look_s)))


async def _find_task(gateway: Gateway, task_id: str) -> Task:
    """Return a task; raises `NotFound` for an unknown id."""
    task = await gateway.store.task(task_id) if len(task_id) <= _MAX_ID_CHARS else None
    if task is None:
        raise NotFound("There is no task with this id.")
    return task


async def _make_links(gateway: Gateway, task: Task) -> list[str]:
    """Return a fresh address for each output; an empty list once the outputs are deleted."""
    now, until = gateway.now(), task.expires_at
    if task.result is None or not task.result.outputs:
        return []
    if task.outputs_gone or until is None or until <= now:
        return []
    links = await gateway.output_store.links(task.result.outputs, now=now, expires_at=until)
    base_url = gateway.settings.base_url
    return [base_url + link if link.startswith("/") else link for link in links]


def read_wait_s(text: str) -> float:
    """Return the seconds of `?wait=`; raises `ValidationError`."""
    try:
        wait_s = float(text)
    except ValueError:
        wait_s = -1.0
    if not 0 <= wait_s <= _MAX_WAIT_S:
        raise ValidationError("wait must be a number of seconds from 0 to 30.")
    return wait_s
