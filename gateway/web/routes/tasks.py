"""The route that shows a task (spec §4.3)."""

from typing import Any

from quart import Blueprint, request

from gateway.domain import Task
from gateway.errors import NotFound, ValidationError
from gateway.tasks.notifications import seconds_to_look
from gateway.web import wire
from gateway.web.rate_limits import address, limited
from gateway.web.services import Services, services

blueprint = Blueprint("tasks", __name__)

_MAX_WAIT_S = 30.0
_MAX_ID_CHARS = 64


@blueprint.get("/api/task/<task_id>")
@limited("task")
async def show_task(task_id: str) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Show a task; with `?wait=N` once it is done, or after N seconds.

    Where too many requests wait already, the answer comes at once.
    """
    gateway, wait_s = services(), _read_wait_s()
    if wait_s > 0:
        with gateway.long_polls.counted(address()) as may_wait:
            task = await _wait_for_task(gateway, task_id, wait_s if may_wait else 0.0)
    else:
        task = await _wait_for_task(gateway, task_id, wait_s)
    links = await _make_links(gateway, task)
    body = wire.task(task, network=gateway.settings.network, links=links)
    return body, 200, {"Cache-Control": "no-store"}


async def _wait_for_task(gateway: Services, task_id: str, wait_s: float) -> Task:
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
            if task.is_done or left_s <= 0 or gateway.readiness.is_draining:
                return task
            await subscription.wait(min(left_s, seconds_to_look(gateway.timing.look_s)))


async def _find_task(gateway: Services, task_id: str) -> Task:
    """Return a task; raises `NotFound` for an unknown id."""
    task = await gateway.store.task(task_id) if len(task_id) <= _MAX_ID_CHARS else None
    if task is None:
        raise NotFound("There is no task with this id.")
    return task


async def _make_links(gateway: Services, task: Task) -> list[str]:
    """Return a fresh address for each output; an empty list once the outputs are deleted."""
    now, until = gateway.now(), task.expires_at
    if task.result is None or not task.result.outputs:
        return []
    if task.outputs_gone or until is None or until <= now:
        return []
    links = await gateway.output_store.links(task.result.outputs, now=now, expires_at=until)
    base_url = gateway.settings.base_url
    return [base_url + link if link.startswith("/") else link for link in links]


def _read_wait_s() -> float:
    """Return the seconds of `?wait=`; raises `ValidationError`."""
    text = request.args.get("wait", "0")
    try:
        wait_s = float(text)
    except ValueError:
        wait_s = -1.0
    if not 0 <= wait_s <= _MAX_WAIT_S:
        raise ValidationError("wait must be a number of seconds from 0 to 30.")
    return wait_s
