"""A task as the result of a tool: text, links, and small pictures and sounds inline."""

import asyncio
import base64
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from gateway.contracts import OutputStoreUnavailable
from gateway.domain import StoredOutput, StoredResult, Task
from gateway.running.gateway import Gateway
from gateway.web import wire
from gateway.web.front.answers import answer_error
from gateway.web.routes.tasks import show_with
from gateway_mcp.tools import GET_TASK

# Claude refuses answers of more than 1,048,576 characters (PrefectHQ/fastmcp#1036). A picture that
# does not fit, after Base64, is a link only. The rest is for the envelope and the receipt.
_MAX_RESULT_CHARS = 1_048_576 - 48_576
# Of a block with a picture, without its data.
_BLOCK_CHARS = 100
# Of a document's Markdown or JSON: some 6,000 tokens.
_MAX_TEXT_CHARS = 25_000
_log = structlog.get_logger()


async def show_task(
    gateway: Gateway, task: Task, links: Sequence[str], admit_pictures: Callable[[], bool]
) -> dict[str, Any]:
    """Return a task as the result of a tool.

    `structuredContent` is the body of `GET /api/task/{taskId}` with its text cut. The first text is
    the same without a document's text, which comes second. If there are small pictures or sounds,
    `admit_pictures` is called once to ask whether the result may contain them.
    """
    body = show_with(gateway, task, links)
    content = [_text(_write_without_text(body))]
    if task.result is not None:
        text = await gateway.long_texts.first_chars(task)
        content += _write_text(text, _count_chars(task.result), links)
        body["result"]["text"] = (text or "")[:_MAX_TEXT_CHARS] or None
        left = _MAX_RESULT_CHARS - len(json.dumps([content, body]))
        content += await _write_outputs(gateway, task.result.outputs, links, admit_pictures, left)
    elif not task.is_done:
        content.append(_text(_explain_wait(task)))
    failed = task.is_done and task.result is None
    return {"isError": failed, "content": content, "structuredContent": body}


def _write_without_text(body: dict[str, Any]) -> str:
    result = body["result"]
    return wire.dumps(body if result is None else body | {"result": {**result, "text": None}})


def _count_chars(result: StoredResult) -> int:
    return result.long_text.chars if result.long_text is not None else len(result.text or "")


def _write_text(text: str | None, chars: int, links: Sequence[str]) -> list[dict[str, Any]]:
    """Return a document's Markdown or JSON, and a link to the rest if it is cut."""
    if text is None:
        return []
    content = [_text(text[:_MAX_TEXT_CHARS])]
    if chars > _MAX_TEXT_CHARS:
        # The last output is the text itself.
        rest = f" All of it: {links[-1]}" if links else ""
        content.append(
            _text(f"These are the first {_MAX_TEXT_CHARS:,} of {chars:,} characters.{rest}")
        )
    return content


async def _write_outputs(
    gateway: Gateway,
    outputs: Sequence[StoredOutput],
    links: Sequence[str],
    admit_pictures: Callable[[], bool],
    left: int,
) -> list[dict[str, Any]]:
    """Return a link to each output that is not deleted, and the media that fit into `left`."""
    linked = list(zip(outputs, map(_link, outputs, links), strict=False))
    left -= len(json.dumps([link for _, link in linked]))
    chosen = _choose_media([output for output, _ in linked], left)
    if chosen and not admit_pictures():
        chosen = set()
    until = asyncio.get_running_loop().time() + gateway.timing.pictures_s
    content: list[dict[str, Any]] = []
    for output, link in linked:
        content.append(link)
        if output.key in chosen:
            content += await _write_media(gateway, output, until)
    return content


def _choose_media(outputs: Sequence[StoredOutput], left: int) -> set[str]:
    """Return the keys of pictures and sounds that fit into a number of characters, in Base64."""
    chosen: set[str] = set()
    for output in outputs:
        chars = _BLOCK_CHARS + 4 * math.ceil(output.size_bytes / 3)
        if chars <= left and _block_type(output) is not None:
            chosen.add(output.key)
            left -= chars
    return chosen


def _link(output: StoredOutput, link: str) -> dict[str, Any]:
    return {
        "type": "resource_link",
        "uri": link,
        "name": output.key.rpartition("/")[2],
        "mimeType": output.media_type,
        "size": output.size_bytes,
    }


async def _write_media(
    gateway: Gateway, output: StoredOutput, until: float
) -> list[dict[str, Any]]:
    """Return a picture or sound, or nothing if the store is not done by `until` (loop time)."""
    try:
        async with asyncio.timeout_at(until):
            data = await gateway.output_store.read(output)
    except (OutputStoreUnavailable, TimeoutError) as error:
        _log.warning("output.not_shown", reason=str(error) or "The output store does not answer.")
        return []
    encoded = base64.b64encode(data).decode()
    return [{"type": _block_type(output), "data": encoded, "mimeType": output.media_type}]


def _block_type(output: StoredOutput) -> str | None:
    """Return the type of a block of content with this output, or None if there is none."""
    media = output.media_type.partition("/")[0]
    return media if media in ("image", "audio") else None


def _explain_wait(task: Task) -> str:
    return (
        f'The task is not done yet. Call {GET_TASK} with taskId "{task.id}" and wait 30 for its '
        "result; it is paid for."
    )


def show_unreadable_purchase(task: Task) -> dict[str, Any]:
    """Return the result of a paid call whose task cannot be shown, with the task's id.

    `structuredContent` is the body of the 200 of `POST /api/x402/{slug}`.
    """
    body = wire.started(task)
    hint = (
        "The call is paid for, but its task cannot be shown now. Do not pay again: call "
        f'{GET_TASK} with taskId "{task.id}" and wait 30 for its result.'
    )
    content = [_text(wire.dumps(body)), _text(hint)]
    return {"isError": False, "content": content, "structuredContent": body}


def show_error(gateway: Gateway, error: Exception, rule: str) -> dict[str, Any]:
    """Return an error as the result of a tool, with the body of the HTTP response."""
    body = answer_error(gateway, error, rule).body.decode().strip()
    return {"isError": True, "content": [_text(body)]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
