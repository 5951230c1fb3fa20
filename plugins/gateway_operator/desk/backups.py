"""Status of backups and restore drills, and starting them."""

import attrs

from gateway.errors import ActionRefused
from gateway.running.gateway import Gateway
from gateway.store.sql import Connection
from gateway_backups import records as rows
from gateway_backups.names import Copy
from gateway_backups.records import BackupRecord, Forgotten, Kind
from gateway_backups.schedule import Backups
from gateway_backups.settings import backup_settings_of
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.desk.desk import Desk

_MAX_RECORDS = 50


@attrs.frozen(kw_only=True)
class BackupStatus:
    """Status as the database knows it, without a request to the bucket."""

    # Whether GATEWAY_BACKUP_URL is set, and the interval.
    is_on: bool
    every_s: float

    # Whether the PostgreSQL server makes the backups; then their status is not known.
    is_servers: bool = False

    # The newest success, and the newest failure if it is newer.
    last: BackupRecord | None = None
    failed: BackupRecord | None = None

    # The newest drill, and the newest success.
    drill: BackupRecord | None = None
    good_drill: BackupRecord | None = None

    # Sales that a restore of the newest backup would lose; None without a backup.
    forgotten: Forgotten | None = None

    # Newest first.
    records: tuple[BackupRecord, ...] = ()

    # Since the newest success; None: there was none.
    age_s: float | None = None
    drill_age_s: float | None = None


# Any stored records are of an earlier SQLite file.
_NO_COPIES = BackupStatus(is_on=False, every_s=0.0, is_servers=True)


def of(gateway: Gateway) -> Backups | None:
    """Return the `Backups` of a running gateway, or None."""
    return gateway.find(Backups) if gateway.keeps(Backups) else None


async def status(desk: Desk) -> BackupStatus:
    """Return the status of backups and drills."""
    return await desk.store.sum(_read_status, desk)


def _read_status(db: Connection, desk: Desk) -> BackupStatus:
    now = desk.now()
    if desk.settings.database_url:
        return _NO_COPIES
    chosen = backup_settings_of(desk.settings)
    last = rows.newest(db, "backup", succeeded=True)
    failed = rows.newest(db, "backup", succeeded=False)
    good_drill = rows.newest(db, "drill", succeeded=True)
    if last is not None and failed is not None and failed.id < last.id:
        failed = None
    return BackupStatus(
        is_on=bool(chosen.backup_url),
        every_s=chosen.backup_hours * 3600,
        last=last,
        failed=failed,
        drill=rows.newest(db, "drill"),
        good_drill=good_drill,
        forgotten=_forgotten(db, last, now),
        records=tuple(rows.records(db, _MAX_RECORDS)),
        age_s=None if last is None else now - last.at,
        drill_age_s=None if good_drill is None else now - good_drill.at,
    )


def _forgotten(db: Connection, last: BackupRecord | None, now: float) -> Forgotten | None:
    if last is None or last.details is None:
        return None
    return rows.forgotten(db, last.details["lastPayment"], last.at, now)


async def copies(backups: Backups | None) -> list[Copy]:
    """List the bucket or folder, newest backup first.

    Raises `ActionRefused` if none is set, and `BackupFailed` if it does not respond.
    """
    return await _needed(backups).copies()


async def run_now(desk: Desk, backups: Backups | None, actor: Actor, kind: Kind) -> BackupRecord:
    """Run a backup or drill now, and return its row.

    Raises `ActionRefused` without a bucket or while another one runs, `AlreadyDone` for a repeated
    request, and `BackupFailed` after recording the failure.
    """
    found = await _claim(desk, backups, actor, kind)
    return await found.run_claimed(kind)


async def begin(desk: Desk, backups: Backups | None, actor: Actor, kind: Kind) -> None:
    """Start a backup or drill and return at once.

    Raises `ActionRefused` and `AlreadyDone` like `run_now`.
    """
    found = await _claim(desk, backups, actor, kind)
    found.begin_claimed(kind)


async def _claim(desk: Desk, backups: Backups | None, actor: Actor, kind: Kind) -> Backups:
    found = _needed(backups)
    # Before the action is recorded: the schedule may start a run during that write.
    found.claim(kind)
    action = NewAction(actor=actor, at=desk.now(), action=f"{kind}.now", subject="database")
    try:
        await desk.records.note(action)
    except BaseException:
        found.release()
        raise
    return found


def _needed(backups: Backups | None) -> Backups:
    if backups is None:
        raise ActionRefused(
            "GATEWAY_BACKUP_URL is not set, so there are no backups. Set it to a private bucket, "
            "such as s3://my-backups/gateway (docs/backups.md)."
        )
    return backups
