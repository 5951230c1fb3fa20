"""The body of a webhook."""

from gateway.domain import Task
from gateway.running.gateway import Gateway
from gateway.web import wire
from gateway.web.routes.tasks import show_body
from gateway_webhooks.queue import Delivery


async def render(gateway: Gateway, event: Delivery, task: Task) -> bytes:
    """Return the body of a webhook, with the task as it is now, but without a long text."""
    return wire.event(
        event.type,
        event.at,
        await show_body(gateway, task),
        status_url=f"{gateway.settings.base_url}/api/task/{task.id}",
        is_cut=task.result is not None and task.result.long_text is not None,
    )
