"""The audit log, in pages and as CSV."""

import contextlib
import csv
import io
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime

import attrs

from gateway_operator.audit_log import ActionRecord, Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.references import shorten_ids

PER_PAGE = 50
_PER_READ = 1_000
_COLUMNS = (
    *("id", "time", "door", "actor", "address", "action", "subject", "reason"),
    *("before", "after"),
)
# Spreadsheets read cells that begin so as formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@attrs.frozen(kw_only=True)
class AuditPage:
    """Actions, newest first."""

    actions: Sequence[ActionRecord]

    # `before` of the next page; None on the last.
    next_before: int | None


async def read_audit(
    desk: Desk, before: int | None = None, *, subject: str = "", action: str = ""
) -> AuditPage:
    """Return a page of the audit log; empty texts do not filter."""
    found = await desk.records.actions(
        before, PER_PAGE + 1, subject=subject or None, action=action or None
    )
    shown = found[:PER_PAGE]
    return AuditPage(actions=shown, next_before=shown[-1].id if len(found) > PER_PAGE else None)


async def export_audit(
    desk: Desk, actor: Actor, *, subject: str = "", action: str = ""
) -> AsyncIterator[str]:
    """Return the audit log as chunks of CSV, newest first, and record the export.

    Empty texts do not filter.
    """
    given = {"subject": subject, "action": action}
    chosen = {name: text for name, text in given.items() if text}
    new = NewAction(
        actor=actor,
        at=desk.now(),
        action="audit.export",
        subject="audit log",
        after=chosen or None,
    )
    # A repeated request is the same export.
    with contextlib.suppress(AlreadyDone):
        await desk.records.note(new)
    return _write_pieces(desk, chosen)


async def _write_pieces(desk: Desk, chosen: Mapping[str, str]) -> AsyncIterator[str]:
    yield _write_rows([_COLUMNS])
    before: int | None = None
    while found := await desk.records.actions(before, _PER_READ, **chosen):
        yield _write_rows([_row_of(one) for one in found])
        before = found[-1].id


def _row_of(one: ActionRecord) -> Sequence[str]:
    at = datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    texts = (one.actor.name, one.actor.address, one.action, one.subject, one.reason)
    facts = ("" if value is None else json.dumps(value) for value in (one.before, one.after))
    return [str(one.id), at, one.actor.door, *map(_plain, texts), *map(_plain, facts)]


def _plain(text: str) -> str:
    """Shorten task ids, which give access, and escape formulas."""
    text = shorten_ids(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _write_rows(rows: Sequence[Sequence[str]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()
