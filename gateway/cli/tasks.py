"""The command `gateway tasks`."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.terminal import json_option, one_sentence, print_rows, wide_option

if TYPE_CHECKING:
    from gateway.contracts.store import JobRecord
    from gateway.domain import Task

_STATUSES = ("held", "queued", "processing", "completed", "failed", "dropped")
_UNCERTAIN = "uncertain_submit"


@click.command()
@click.option("--status", type=click.Choice(_STATUSES), help="Only those in this state.")
@click.option(
    "--uncertain",
    is_flag=True,
    help="Only failed ones that a provider may have made, and billed, all the same: look for "
    "their job, or the time they were sent, in your account there.",
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="At most.")
@json_option
@wide_option
@one_sentence
def tasks(*, status: str | None, uncertain: bool, limit: int, as_json: bool, wide: bool) -> None:
    """List the newest tasks, where their payments stand, and their jobs at providers."""
    from gateway.cli import session as till  # noqa: PLC0415 - other commands start faster
    from gateway.domain import TaskStatus  # noqa: PLC0415
    from gateway.settings import load_settings  # noqa: PLC0415

    async def look() -> list[tuple["Task", "JobRecord"]]:
        state, details = TaskStatus(status) if status else None, _UNCERTAIN if uncertain else None
        async with till.open_session(load_settings()) as opened:
            found = await opened.store.recent_tasks(limit, state, details)
            jobs = await opened.store.jobs_of([task.id for task in found])
        return [(task, jobs[task.id]) for task in found]

    found = asyncio.run(look())
    if not found and not as_json:
        click.echo("There are no such tasks.")
        return
    rows = [_row(task, job) for task, job in found]
    print_rows(rows, as_json=as_json, wide=wide, stacked=_stacked)


def _row(task: "Task", job: "JobRecord") -> dict[str, Any]:
    return {
        "task": task.id,
        "created": _time(task.created_at),
        "endpoint": task.slug,
        "status": str(task.status),
        "attempt": task.attempt,
        "details": task.details or "",
        "flow": str(task.payment.flow),
        "payment": str(task.payment.state),
        "amount": f"{(task.payment.paid_units or task.payment.price_units) / 10**6:g}",
        "cost": f"{job.cost_micros / 10**6:g}" if job.cost_micros is not None else "",
        "sent": _time(job.sent_at) if job.sent_at is not None else "",
        "job": job.handle.id if job.handle is not None else "",
        "note": job.note or "",
    }


def _stacked(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for a narrow terminal: what belongs together below each other."""
    sent = f"sent {row['sent']}" if row["sent"] else ""
    cost = f"cost {row['cost']}" if row["cost"] else ""
    paid = f"{row['amount']} {row['flow']}, {row['payment']}"
    return {
        "task": _lines(row["task"], row["endpoint"], paid),
        "status": _lines(
            f"{row['status']}, attempt {row['attempt']}", row["details"], row["created"]
        ),
        "at the provider": _lines(row["job"], sent, row["note"], cost),
    }


def _lines(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
