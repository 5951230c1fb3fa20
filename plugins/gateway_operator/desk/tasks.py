"""Lists and details of tasks, and access to prompts and outputs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import attrs

from gateway.contracts import OutputStore
from gateway.domain import StoredOutput, TaskStatus
from gateway.errors import ActionRefused, NotFound, WrongValue
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.attempts import ShownAttempt, list_attempts
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.refunds_list import OwedRefund, find_refunds, may_be_billed
from gateway_operator.desk.sale_state import SaleState, describe_state
from gateway_operator.desk.timeline import Moment, make_timeline
from gateway_operator.sql import task_detail, task_lists
from gateway_operator.sql.task_detail import TaskFacts
from gateway_operator.sql.task_lists import TaskFilter, TaskRow

PER_PAGE = 50
STATES = (*(str(status) for status in TaskStatus), "owed", "refunded")

# Seconds that an operator's link to an output works.
_LINK_S = 600.0
_MAX_CHARS = 200


@attrs.frozen(kw_only=True)
class ListedTask:
    """One task of a list."""

    row: TaskRow
    state: SaleState

    # The vendor's message if known, else the gateway's; empty unless it failed.
    why: str

    # In seconds; None before the end.
    took_s: float | None


@attrs.frozen(kw_only=True)
class TasksPage:
    """The tasks that match a filter, and the choices of filters."""

    # Unix seconds.
    at: float
    tasks: Sequence[ListedTask]

    # `before` of the next page; None on the last.
    next_before: str | None
    slugs: Sequence[str]
    reasons: Sequence[str]


@attrs.frozen(kw_only=True)
class TaskDetail:
    """The details of one task."""

    at: float
    facts: TaskFacts
    listed: ListedTask
    attempts: Sequence[ShownAttempt]
    timeline: Sequence[Moment]
    may_be_billed: bool

    # None if no refund is due or paid.
    refund: OwedRefund | None

    has_outputs: bool


@attrs.frozen(kw_only=True)
class LinkedOutput:
    """An output, and a link to it that expires."""

    output: StoredOutput
    link: str


@attrs.frozen(kw_only=True)
class BuyerContent:
    """The buyer's content that the operator asked to see."""

    task_id: str

    # None if the outputs were requested.
    prompt: str | None = attrs.field(default=None, repr=False)
    file_name: str | None = None
    outputs: Sequence[LinkedOutput] = ()

    # When the links expire (Unix seconds).
    until: float | None = None


async def list_tasks(desk: Desk, wanted: TaskFilter) -> TasksPage:
    """Return a page of tasks, newest first."""
    rows = await desk.store.sum(task_lists.find_tasks, wanted, PER_PAGE + 1)
    slugs, reasons = await desk.shared.get(
        "task filters", lambda: desk.store.sum(task_lists.choices)
    )
    shown = rows[:PER_PAGE]
    return TasksPage(
        at=desk.now(),
        tasks=[describe_task(row) for row in shown],
        next_before=shown[-1].id if len(rows) > PER_PAGE else None,
        slugs=slugs,
        reasons=reasons,
    )


async def find_task(desk: Desk, task_id: str) -> TaskDetail:
    """Return the details of one task; raises `NotFound`."""
    facts = await desk.store.sum(task_detail.find_task, task_id)
    if facts is None:
        raise NotFound("There is no such task.")
    # A request's key names a session, which must not be shown.
    shown = [
        attrs.evolve(one, actor=attrs.evolve(one.actor, request=None)) for one in facts.actions
    ]
    waiting = [] if desk.running is None else await desk.running.undelivered(task_id)
    facts, row = attrs.evolve(facts, actions=shown, undelivered=waiting), facts.row
    return TaskDetail(
        at=desk.now(),
        facts=facts,
        listed=describe_task(row),
        attempts=list_attempts(facts),
        timeline=make_timeline(facts),
        refund=None if row.refund_units is None else (await find_refunds(desk, [task_id]))[0],
        may_be_billed=row.status == TaskStatus.FAILED
        and may_be_billed(
            *(row.details, row.error),
            has_job=facts.job_id is not None,
            cost_micros=row.cost_micros,
        ),
        has_outputs=bool(facts.outputs) and not _are_gone(facts, desk.now()),
    )


async def show_prompt(desk: Desk, actor: Actor, task_id: str, *, reason: str) -> BuyerContent:
    """Return the prompt, and record the access in the audit log.

    Raises `WrongValue` without a reason, and `NotFound`.
    """
    found = await desk.store.sum(task_detail.find_prompt, task_id)
    if found is None:
        raise NotFound("There is no such task.")
    await _note_access(desk, actor, "prompt.look", task_id, reason)
    return BuyerContent(task_id=task_id, prompt=found[0], file_name=found[1])


async def show_outputs(
    desk: Desk, output_store: OutputStore, actor: Actor, task_id: str, *, reason: str
) -> BuyerContent:
    """Return links to the outputs, and record the access in the audit log.

    Raises `WrongValue` without a reason, `ActionRefused` if they are deleted, and `NotFound`.
    """
    facts, now = (await find_task(desk, task_id)).facts, desk.now()
    if not facts.outputs:
        raise ActionRefused("This task has made no output.")
    if _are_gone(facts, now):
        raise ActionRefused("The outputs of this task were deleted after their retention.")
    await _note_access(desk, actor, "output.look", task_id, reason)
    until = min(now + _LINK_S, facts.own.expires_at or now + _LINK_S)
    links = await output_store.links(facts.outputs, now=now, expires_at=until)
    return BuyerContent(
        task_id=task_id,
        outputs=[
            LinkedOutput(output=output, link=link)
            for output, link in zip(facts.outputs, links, strict=True)
        ],
        until=until,
    )


def make_filter(
    *,
    state: str = "",
    slug: str = "",
    reason: str = "",
    payer: str = "",
    day: str = "",
    q: str = "",
    before: str = "",
) -> TaskFilter:
    """Return the filter of a form's fields; raises `WrongValue`.

    `day` is a day in UTC such as `2026-01-31`.
    """
    if state and state not in STATES:
        raise WrongValue(f"A task's state is one of {', '.join(STATES)}.")
    if max(map(len, (slug, reason, payer, q, before))) > _MAX_CHARS:
        raise WrongValue(f"A filter has at most {_MAX_CHARS} characters.")
    since, until = read_day(day) if day else (None, None)
    return TaskFilter(
        state=state,
        slug=slug,
        reason=reason,
        payer=payer.strip(),
        since=since,
        until=until,
        search=q.strip(),
        before=before,
    )


def describe_task(row: TaskRow) -> ListedTask:
    """Return a task as a list shows it."""
    has_failed = row.status == TaskStatus.FAILED
    return ListedTask(
        row=row,
        state=describe_state(row),
        why=(row.vendor_message or row.error or "") if has_failed else "",
        took_s=None if row.completed_at is None else row.completed_at - row.created_at,
    )


def _are_gone(facts: TaskFacts, now: float) -> bool:
    expires_at = facts.own.expires_at
    return bool(facts.own.outputs_gone) or (expires_at is not None and expires_at <= now)


def read_day(text: str) -> tuple[float, float]:
    """Return the start and end of a day in UTC; raises `WrongValue`."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        return day.timestamp(), (day + timedelta(days=1)).timestamp()
    except (ValueError, OverflowError):
        raise WrongValue("A day is written like 2026-01-31.") from None


async def _note_access(desk: Desk, actor: Actor, action: str, task_id: str, reason: str) -> None:
    """Record the access; a repeated request counts once."""
    if not reason.strip():
        raise WrongValue("Give a reason: the audit log shows who looked, and why.")
    new = NewAction(
        actor=actor, at=desk.now(), action=action, subject=task_id, reason=reason.strip()
    )
    try:
        await desk.records.note(new)
    except AlreadyDone:
        return
