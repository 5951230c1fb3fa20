"""The task route (spec §4.3): one answer, or a stream of events."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from quart import Response

from gateway.domain import Task
from gateway.errors import NotFound, TooManyStreams, ValidationError
from gateway.running.gateway import Gateway
from gateway.running.long_texts import ShownTask
from gateway.tasks.notifications import seconds_to_poll
from gateway.web import wire
from gateway.web.front.answers import JSON, NOT_STORED, Answer, Pieces
from gateway.web.front.event_stream import EVENT_STREAM, held_of
from gateway.web.front.routing import Asked, QuartAsked, Route

TASK_LIMIT = "task"
_MAX_WAIT_S = 30.0
_MAX_ID_CHARS = 64
_HEADERS = JSON | NOT_STORED
# Reconnection time of clients.
_RETRY = b"retry: 2000\n\n"  # milliseconds
# Keeps proxies from closing a silent connection.
_COMMENT = b": waiting\n\n"


async def answer_task(gateway: Gateway, asked: Asked) -> Answer:
    """Return a task; `?wait=N` waits up to N seconds until it is done (long poll).

    If too many requests wait already, it returns at once. Raises `NotFound`.
    """
    wait_s = read_wait_s(asked.query("wait", "0"))
    task = await _poll(gateway, asked.part, wait_s, asked.address)
    shown = (await _encode_task(gateway, task)).within(b"", b"\n")
    if shown.text is None:
        return Answer(200, shown.before, _HEADERS)
    pieces = Pieces(shown.size, lambda: shown.pieces(gateway.long_texts))
    return Answer(200, b"", _HEADERS, pieces)


async def stream_task(gateway: Gateway, asked: QuartAsked) -> Response:
    """Return a stream of a task's changes, which ends with the task.

    Raises `NotFound` and `TooManyStreams`.
    """
    read_wait_s(asked.query("wait", "0"))
    await find_task(gateway, asked.part)
    if not held_of(asked.request).enter_context(gateway.streams.counted(asked.address)):
        raise TooManyStreams(int(gateway.timing.stream_s))
    # `X-Accel-Buffering` makes nginx pass on each event at once.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    events = _stream_task(gateway, asked.part)
    response = Response(events, 200, headers, content_type=EVENT_STREAM)
    response.timeout = None
    return response


async def _stream_task(gateway: Gateway, task_id: str) -> AsyncGenerator[bytes, None]:
    """Yield the current task, each change of it, and comments in between.

    The first event is the current state, so a client that reconnects misses nothing.
    """
    now, timing = asyncio.get_running_loop().time, gateway.timing
    end, number, shown = now() + timing.stream_s, 0, None
    with gateway.notifications.subscribed(task_id) as subscription:
        yield _RETRY
        while True:
            task = await find_task(gateway, task_id)
            if task != shown:
                shown, number = task, number + 1
                # One line of data, because JSON escapes line breaks.
                head = f"id: {number}\nevent: task\ndata: ".encode()
                event = (await _encode_task(gateway, task)).within(head, b"\n\n")
                async for piece in event.pieces(gateway.long_texts):
                    yield piece
                comment_at = now() + timing.stream_quiet_s
            elif now() >= comment_at:
                yield _COMMENT
                comment_at = now() + timing.stream_quiet_s
            if task.is_done or gateway.readiness.is_drained or now() >= end:
                return
            pauses = (seconds_to_poll(timing.stream_poll_s), comment_at - now(), end - now())
            await subscription.wait(max(min(pauses), 0.0))


async def poll_task(
    gateway: Gateway, task_id: str, wait_s: float, client: str
) -> tuple[Task, list[str]]:
    """Return a task and a link to each output, with the same wait as `answer_task`."""
    task = await _poll(gateway, task_id, wait_s, client)
    return task, await _make_links(gateway, task)


async def _poll(gateway: Gateway, task_id: str, wait_s: float, client: str) -> Task:
    """Return the task when it is done, or after `wait_s` seconds; raises `NotFound`."""
    if wait_s <= 0:
        return await find_task(gateway, task_id)
    deadline = gateway.now() + wait_s
    with (
        gateway.long_polls.counted(client) as may_wait,
        gateway.notifications.subscribed(task_id) as subscription,
    ):
        while True:
            task = await find_task(gateway, task_id)
            left_s = deadline - gateway.now()
            is_over = task.is_done or left_s <= 0 or gateway.readiness.is_drained
            if is_over or not may_wait:
                return task
            await subscription.wait(min(left_s, seconds_to_poll(gateway.poll_s)))


async def _encode_task(gateway: Gateway, task: Task) -> ShownTask:
    body = await show_body(gateway, task)
    text = task.result.long_text if task.result is not None else None
    if text is None:
        return ShownTask(task.id, wire.encode(body))
    before, after = wire.encode_around_text(body)
    return ShownTask(task.id, before, text, after)


async def show_body(gateway: Gateway, task: Task) -> dict[str, Any]:
    """Return the body of a task without a long text, with fresh links to its outputs."""
    return show_with(gateway, task, await _make_links(gateway, task))


def show_with(gateway: Gateway, task: Task, links: Sequence[str]) -> dict[str, Any]:
    """Return the body of a task with these links to its outputs."""
    refund = task.refund
    words = gateway.refund_promises.describe(task.payment, refund) if refund is not None else ""
    network = gateway.settings.network
    return wire.task(task, network=network, links=links, refund_words=words)


async def find_task(gateway: Gateway, task_id: str) -> Task:
    """Return a task by the id that a client sent; raises `NotFound`."""
    task = await gateway.store.task(task_id) if len(task_id) <= _MAX_ID_CHARS else None
    if task is None:
        raise NotFound("There is no task with this id.")
    return task


async def _make_links(gateway: Gateway, task: Task) -> list[str]:
    """Return a fresh URL for each output; none after the outputs are deleted."""
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


ROUTES = (
    Route(
        method="GET",
        rule="/api/task/<task_id>",
        answer=answer_task,
        stream=stream_task,
        limit=TASK_LIMIT,
        skips_quart=True,
        plain_query=re.compile(rb"wait=[0-9]{1,3}"),
    ),
)
