"""The command `gateway tasks`."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import attrs
import click

from gateway.cli.terminal import json_option, one_sentence, wide_option
from gateway.contracts.store import JobRecord
from gateway.domain import Task, TaskStatus
from gateway.domain.failure_reasons import FailureReason
from gateway.errors import ActionRefused, NotFound
from gateway.settings import load_settings
from gateway_operator.commands.session import open_session
from gateway_operator.desk.references import find_id
from gateway_operator.desk.tasks import TaskDetail, find_task
from gateway_operator.desk.timeline import Moment
from gateway_operator.tables import print_rows

_STATUSES = ("held", "queued", "processing", "completed", "failed", "dropped")


@click.command()
@click.option("--status", type=click.Choice(_STATUSES), help="Only tasks in this state.")
@click.option(
    "--uncertain",
    is_flag=True,
    help="Only failed tasks whose job the vendor may still have made and billed. Find the job, or "
    "the time it was sent, in your account at the vendor.",
)
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1), help="Maximum number of rows."
)
# People try `tasks list`, because `refunds list` exists.
@click.argument(
    "word", type=click.Choice(["list", "show"]), required=False, metavar="[list|show TASK]"
)
@click.argument("task_id", required=False, metavar="")
@json_option
@wide_option
@one_sentence
def tasks(
    *,
    word: str | None,
    task_id: str | None,
    status: str | None,
    uncertain: bool,
    limit: int,
    as_json: bool,
    wide: bool,
) -> None:
    """List the newest tasks with their payments and jobs.

    A job is the vendor's work on a task. `show TASK` prints the history of one, with its attempts.
    """
    if (word == "show") != (task_id is not None):
        raise click.UsageError("`gateway tasks show TASK` names one task, by its id or its start.")
    if task_id is not None:
        _show_task(task_id, as_json=as_json)
        return

    async def find() -> list[tuple[Task, JobRecord]]:
        state = TaskStatus(status) if status else None
        details = FailureReason.UNCERTAIN_SUBMIT if uncertain else None
        async with open_session(load_settings()) as desk:
            found = await desk.store.recent_tasks(limit, state, details)
            jobs = await desk.store.jobs_of([task.id for task in found])
        return [(task, jobs[task.id]) for task in found]

    found = asyncio.run(find())
    if not found and not as_json:
        click.echo("No matching tasks.")
        return
    rows = [_make_row(task, job) for task, job in found]
    print_rows(rows, as_json=as_json, wide=wide, stacked=_stack_row)


def _show_task(named: str, *, as_json: bool) -> None:
    """Print what happened to one task, as its page shows it."""

    async def find() -> TaskDetail:
        async with open_session(load_settings()) as desk:
            try:
                return await find_task(desk, await find_id(desk, named))
            except NotFound as error:
                raise ActionRefused(error.message) from None

    detail = asyncio.run(find())
    row, made_by = detail.facts.row, detail.facts.own.made_by
    if as_json:
        facts: dict[str, Any] = {"task": row.id, "endpoint": row.slug, "status": row.status}
        facts |= {"made_by": made_by}
        facts |= {"attempts": [attrs.asdict(one) for one in detail.attempts]}
        facts |= {"timeline": [attrs.asdict(one) for one in detail.timeline]}
        click.echo(json.dumps(facts, indent=2))
        return
    maker = f"made by {made_by}, its fallback" if made_by is not None else ""
    parts = (row.id, row.slug, detail.listed.state.words, maker)
    click.echo("  ".join(filter(None, parts)))
    print_rows([_make_moment(one) for one in detail.timeline], as_json=False)


def _make_moment(one: Moment) -> dict[str, Any]:
    text = ": ".join(part for part in (one.text, one.reason) if part)
    return {
        "time": _format_time(one.at),
        "what": one.title,
        "details": _join_lines(text, one.tx_hash),
    }


def _make_row(task: Task, job: JobRecord) -> dict[str, Any]:
    return {
        "task": task.id,
        "created": _format_time(task.created_at),
        "endpoint": task.slug,
        "status": str(task.status),
        "attempt": task.attempt,
        "details": task.details or "",
        "flow": task.payment.method or str(task.payment.flow),
        "payment": str(task.payment.state),
        "amount": f"{(task.payment.paid_units or task.payment.price_units) / 10**6:g}",
        "cost": f"{job.cost_micros / 10**6:g}" if job.cost_micros is not None else "",
        "cost source": job.cost_source or "",
        "provider": job.provider or "",
        "reason": job.reason or "",
        "sent": _format_time(job.sent_at) if job.sent_at is not None else "",
        "job": job.handle.id if job.handle is not None else "",
        "note": job.note or "",
    }


def _stack_row(row: dict[str, Any]) -> dict[str, Any]:
    """Use fewer columns on a narrow terminal."""
    sent = f"sent {row['sent']}" if row["sent"] else ""
    cost = f"cost {row['cost']}" if row["cost"] else ""
    paid = f"{row['amount']} {row['flow']}, {row['payment']}"
    return {
        "task": _join_lines(row["task"], row["endpoint"], paid),
        "status": _join_lines(
            f"{row['status']}, attempt {row['attempt']}", row["details"], row["created"]
        ),
        "at the provider": _join_lines(
            row["provider"], row["job"], sent, row["note"], row["reason"], cost
        ),
    }


def _join_lines(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
