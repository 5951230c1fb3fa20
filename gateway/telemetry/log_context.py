"""What each log line about a task carries: task, endpoint, provider, payment and request."""

import structlog


def bind_task(
    *,
    task: str,
    slug: str,
    payment: int | None = None,
    provider: str | None = None,
    request: str | None = None,
) -> None:
    """Let every later line of the current asyncio task, and of those it starts, carry these.

    `request` is the id of the HTTP request that bought the task. What is None is left as it is.
    """
    known = {
        "task": task,
        "slug": slug,
        "payment": payment,
        "provider": provider,
        "request": request,
    }
    structlog.contextvars.bind_contextvars(
        **{name: value for name, value in known.items() if value is not None}
    )


def current_request() -> str:
    """Return the id of the HTTP request that is being answered; empty outside of requests."""
    return str(structlog.contextvars.get_contextvars().get("request", ""))
