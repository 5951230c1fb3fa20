"""Tasks in place of results: MCP's extension `io.modelcontextprotocol/tasks` (SEP-2663).

Source: github.com/modelcontextprotocol/ext-tasks, schema 2026-07-28. The SDK does not know the
extension; it lets a server add methods and results of its own. The gateway's tasks are durable
before the answer, as the extension demands.
"""

from collections.abc import Mapping
from typing import Any

from gateway.domain import Task
from gateway.web import wire
from gateway.web.routes.tasks import look_at_task
from gateway.web.services import Services
from gateway_mcp.door import Incoming
from gateway_mcp.results import show_task

TASKS = "io.modelcontextprotocol/tasks"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def takes_tasks(meta: Mapping[str, Any]) -> bool:
    """Whether a request's `_meta` declares the extension."""
    capabilities = meta.get(_CAPABILITIES)
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return isinstance(extensions, dict) and TASKS in extensions


def describe_new_task(task: Task) -> dict[str, Any]:
    """Return the result of a call whose task goes on.

    `@x402/mcp` throws away an answer without `content`, after it has paid: hence the text.
    """
    text = f"The task {task.id} has started."
    return {
        "resultType": "task",
        **_describe(task),
        "content": [{"type": "text", "text": text}],
    }


async def show_handle(gateway: Services, task_id: str, incoming: Incoming) -> dict[str, Any]:
    """Return the result of `tasks/get`; raises `NotFound` for an unknown id.

    A task that failed is completed in the extension's words: its result says `isError`.
    """
    task, links = await look_at_task(gateway, task_id, 0.0, incoming.address)
    described = _describe(task)
    if task.is_done:
        described["result"] = await show_task(gateway, task, links, incoming.admit_pictures)
    return described


def _describe(task: Task) -> dict[str, Any]:
    times = wire.task(task, network="", links=())
    last = times["completedAt"] or times["startedAt"] or times["createdAt"]
    return {
        "taskId": task.id,
        "status": "completed" if task.is_done else "working",
        "createdAt": times["createdAt"],
        "lastUpdatedAt": last,
        # The task stays; its outputs expire.
        "ttlMs": None,
        "pollIntervalMs": wire.POLL_S * 1000,
    }
