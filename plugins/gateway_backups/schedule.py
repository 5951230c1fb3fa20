"""Scheduled copies and a weekly drill, both on demand as well."""

import asyncio
import contextlib
import time
from functools import partial

import attrs
import structlog

from gateway.concurrency.threads import run_in_daemon
from gateway.contracts import Clock
from gateway.errors import ActionRefused, BackupFailed
from gateway.settings import Settings
from gateway.store import SqlStore
from gateway_backups import copying, records
from gateway_backups.drill import drill, find_newest
from gateway_backups.names import Copy
from gateway_backups.place import Place, place_of
from gateway_backups.records import BackupRecord, Kind
from gateway_backups.settings import backup_settings_of

_KINDS: tuple[Kind, ...] = ("backup", "drill")
_log = structlog.get_logger()


@attrs.frozen(kw_only=True)
class BackupTiming:
    """Intervals of copies and drills, in seconds."""

    # How often to check for due work. The times of the last runs are in the store, so a restart
    # repeats nothing.
    poll_s: float = 30.0
    drill_s: float = 7 * 86_400.0
    # After a failed drill. The cause may have been the connection.
    drill_again_s: float = 86_400.0


@attrs.define(kw_only=True)
class Backups:
    """Makes and tests copies of one gateway's database, one at a time."""

    settings: Settings
    store: SqlStore
    now: Clock
    timing: BackupTiming = attrs.field(factory=BackupTiming)
    _place: Place | None = attrs.field(default=None, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _running: Kind | None = attrs.field(default=None, init=False)
    # Set when a copy is wanted before it is due.
    _early: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    # The newest change of a payment for which an early copy was wanted, successful or not.
    _tried: int = attrs.field(default=0, init=False)

    @property
    def running(self) -> Kind | None:
        """The copy or drill in progress in this process, or None."""
        return self._running

    async def back_up(self) -> BackupRecord:
        """Make a copy now and delete expired ones; returns its row.

        Raises `ActionRefused` if another run is in progress, and `BackupFailed` after recording
        the failure.
        """
        self.claim("backup")
        return await self.run_claimed("backup")

    async def drill(self) -> BackupRecord:
        """Test the newest copy now; returns the drill's row.

        Raises `ActionRefused` if another run is in progress, and `BackupFailed` after recording
        the failure.
        """
        self.claim("drill")
        return await self.run_claimed("drill")

    def claim(self, kind: Kind) -> None:
        """Reserve the next run for this copy or drill; `run_claimed` or `release` ends that.

        Raises `ActionRefused` if another is running.
        """
        if self._running is not None:
            raise ActionRefused(f"A {self._running} is already running. Try again in a minute.")
        self._running = kind

    def release(self) -> None:
        """Give up a claim without a run."""
        self._running = None

    async def run_claimed(self, kind: Kind) -> BackupRecord:
        """Make the claimed copy or drill, then log and record the result."""
        at, began = self.now(), time.monotonic()
        try:
            row = await (self._copy(at) if kind == "backup" else self._drill(at))
        except BackupFailed as error:
            row = _row(kind, at, getattr(error, "copy", ""), None, None, error=str(error))
        finally:
            self._running = None
        row = attrs.evolve(row, took_s=time.monotonic() - began)
        _log_result(row)
        number = await self.store.write(records.add, row)
        if row.error is not None:
            raise BackupFailed(row.error)
        return attrs.evolve(row, id=number)

    def begin_claimed(self, kind: Kind) -> None:
        """Start the claimed copy or drill in the background; its row records the result."""

        async def work() -> None:
            # The failure is recorded and logged.
            with contextlib.suppress(BackupFailed):
                await self.run_claimed(kind)

        self._task = asyncio.create_task(work(), name=kind)

    async def find_pending(self) -> list[str]:
        """Return `backup` while a copy or drill is in progress, or payments have changed since.

        Then it begins a copy, once per change: a process that ends makes no hourly copies. A copy
        that fails is made before the end of the next process.
        """
        if self._running is None and not self._early.is_set() and await self._lacks_copy():
            self._early.set()
        return ["backup"] if self._running is not None or self._early.is_set() else []

    async def _lacks_copy(self) -> bool:
        number, at = await self.store.read(records.last_change)
        if number == self._tried:
            return False
        self._tried = number
        newest = await self._newest("backup", succeeded=True)
        return newest is None or newest.at <= at

    async def copies(self) -> list[Copy]:
        """Return the copies in the place, newest first; raises `BackupFailed`."""
        return await run_in_daemon(lambda: self._find_place().copies(), "copies")

    async def repeat_forever(self) -> None:
        """Make copies and drills when they are due, until cancelled.

        Cancelling aborts a copy in progress. The next one removes its temporary files.
        """
        # The start may just have made a copy from before a migration.
        await self._send_kept()
        while True:
            for kind in _KINDS:
                try:
                    if self._takes_early(kind) or await self._is_due(kind):
                        self.claim(kind)
                        await self.run_claimed(kind)
                except ActionRefused:
                    # The operator has just started one. An early copy may still be wanted then.
                    self._tried = 0
                except BackupFailed:
                    # It is recorded and logged.
                    pass
                except Exception:  # noqa: BLE001 - the edge of a background task: it repeats
                    _log.exception("sweep.failed", sweep="backups")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.timing.poll_s):
                    await self._early.wait()

    def _takes_early(self, kind: Kind) -> bool:
        """Whether an early copy is wanted. The caller claims it without an `await` in between."""
        is_wanted = kind == "backup" and self._early.is_set()
        if is_wanted:
            self._early.clear()
        return is_wanted

    async def _is_due(self, kind: Kind) -> bool:
        last, timing = await self._newest(kind), self.timing
        if last is None:
            # The first drill tests the first copy.
            return kind == "backup" or await self._newest("backup", succeeded=True) is not None
        again_s = timing.drill_again_s if last.error else timing.drill_s
        hours = backup_settings_of(self.settings).backup_hours
        every_s = hours * 3600 if kind == "backup" else again_s
        # Setting the clock back does not lengthen the pause.
        return abs(self.now() - last.at) >= every_s

    async def _newest(self, kind: Kind, *, succeeded: bool | None = None) -> BackupRecord | None:
        find = partial(records.newest, succeeded=succeeded)
        return await self.store.read(find, kind)

    async def _copy(self, at: float) -> BackupRecord:
        settings, place = self.settings, self._find_place()
        made = await run_in_daemon(lambda: copying.make_copy(settings, place, at), "backup")
        await self._send_kept()
        try:
            await run_in_daemon(lambda: copying.thin_out(settings, place), "backup")
        except BackupFailed as error:
            # The copy itself is made; the next run tries this again.
            _log.warning("backup.old_copies", error=str(error))
        return _row("backup", at, made.name, made.size_bytes, {"lastPayment": made.last_payment})

    async def _send_kept(self) -> None:
        """Upload the newest copy from before a migration, once.

        A failure is retried by the next run.
        """
        try:
            place = self._find_place()
            await run_in_daemon(lambda: copying.send_kept(self.settings, place), "backup")
        except (BackupFailed, OSError) as error:
            _log.warning("backup.before_migration", error=str(error))

    async def _drill(self, at: float) -> BackupRecord:
        settings, place = self.settings, self._find_place()
        copy = await run_in_daemon(lambda: find_newest(settings, place), "drill")
        try:
            done = await run_in_daemon(lambda: drill(settings, place, copy, self.now()), "drill")
        except BackupFailed as error:
            raise _Failed(str(error), copy.name) from None
        return _row("drill", at, copy.name, copy.size_bytes, attrs.asdict(done.forgotten))

    def _find_place(self) -> Place:
        if self._place is None:
            self._place = place_of(self.settings)
        return self._place


class _Failed(BackupFailed):
    """A failure of a particular copy."""

    def __init__(self, text: str, copy: str) -> None:
        super().__init__(text)
        self.copy = copy


def _row(
    kind: Kind,
    at: float,
    name: str,
    size_bytes: int | None,
    details: dict[str, object] | None,
    *,
    error: str | None = None,
) -> BackupRecord:
    return BackupRecord(
        kind=kind, at=at, took_s=0.0, name=name, size_bytes=size_bytes, error=error, details=details
    )


def _log_result(row: BackupRecord) -> None:
    took_s = round(row.took_s, 3)
    if row.error is not None:
        event = "backup.failed" if row.kind == "backup" else "drill.failed"
        _log.error(event, copy=row.name, took_s=took_s, error=row.error)
    elif row.kind == "backup":
        _log.info("backup.done", copy=row.name, took_s=took_s, size_bytes=row.size_bytes)
    else:
        _log.info("drill.done", copy=row.name, took_s=took_s, **(row.details or {}))
