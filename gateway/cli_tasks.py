"""The command `gateway tasks`."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from gateway.terminal import one_sentence, print_rows

if TYPE_CHECKING:
    from gateway.domain import Task

_STATUSES = ("held", "queued", "processing", "completed", "failed", "dropped")


@click.command()
@click.option("--status", type=click.Choice(_STATUSES), help="Only those in this state.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="At most.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@one_sentence
def tasks(*, status: str | None, limit: int, as_json: bool) -> None:
    """List the newest tasks, and where their payments stand."""
    from gateway import till  # noqa: PLC0415 - other commands start faster
    from gateway.domain import TaskStatus  # noqa: PLC0415
    from gateway.settings import load_settings  # noqa: PLC0415

    async def look() -> list["Task"]:
        async with till.open_till(load_settings()) as opened:
            return await opened.store.recent_tasks(limit, TaskStatus(status) if status else None)

    found = asyncio.run(look())
    if not found and not as_json:
        click.echo("There are no such tasks.")
        return
    print_rows([_row(task) for task in found], as_json=as_json)


def _row(task: "Task") -> dict[str, Any]:
    return {
        "task": task.id,
        "created": datetime.fromtimestamp(task.created_at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "endpoint": task.slug,
        "status": str(task.status),
        "attempt": task.attempt,
        "details": task.details or "",
        "flow": str(task.payment.flow),
        "payment": str(task.payment.state),
        "amount": f"{(task.payment.paid_units or task.payment.price_units) / 10**6:g}",
    }
