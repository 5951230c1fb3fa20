"""Deletes outputs past their retention, and files that belong to no task. Tasks are kept."""

import asyncio
import itertools
from collections.abc import Callable

import structlog

from gateway.contracts import Clock, OutputStore
from gateway.contracts.outputs import OutputStoreUnavailable, StoredFile
from gateway.errors import text_of
from gateway.store import SqlStore

_SWEEP_S = 600.0
# In sweeps: every six hours.
_TIDY_EVERY = 36
# Tasks per batch.
_BATCH = 100
# A file without a task may belong to a running attempt, unless it is older than this.
_STRAY_S = 86_400.0
_log = structlog.get_logger()


async def sweep_forever(
    store: SqlStore,
    output_store: OutputStore,
    now: Clock,
    *,
    pause_s: float = _SWEEP_S,
    is_mine: Callable[[], bool] = lambda: True,
) -> None:
    """Sweep at once and every ten minutes; tidy after ten minutes and every six hours.

    `pause_s`: seconds between two sweeps. While `is_mine` is False, another node sweeps, or none;
    each batch asks again, because the clock may jump in between.
    """
    for number in itertools.count():
        try:
            while is_mine() and await sweep(store, output_store, now()):
                pass
            if number % _TIDY_EVERY == 1 and is_mine():
                await tidy(store, output_store, now())
        except Exception:  # noqa: BLE001 - the next sweep tries again
            _log.exception("retention.failed")
        await asyncio.sleep(pause_s)


async def sweep(store: SqlStore, output_store: OutputStore, now: float) -> int:
    """Delete a batch of expired outputs; returns the number of tasks.

    Files are deleted first: after a crash, the task is swept again, and no file is left without a
    task.
    """
    gone: list[str] = []
    # Outputs that cannot be deleted stay at the front of every query, so its limit grows.
    stuck: set[str] = set()
    while not gone:
        expired = await store.expired_outputs(now=now, limit=_BATCH + len(stuck))
        fresh = [(task_id, outputs) for task_id, outputs in expired if task_id not in stuck]
        if not fresh:
            break
        for task_id, outputs in fresh:
            try:
                await output_store.delete(outputs)
                gone.append(task_id)
            except OutputStoreUnavailable as error:
                stuck.add(task_id)
                _log.warning("retention.stuck", task=task_id, error=text_of(error))
    if gone:
        await store.forget_outputs(gone)
        _log.info("retention.swept", tasks=len(gone))
    return len(gone)


async def tidy(store: SqlStore, output_store: OutputStore, now: float) -> int:
    """Delete files that belong to no task; returns how many.

    They come from attempts that died between saving and completing, and from aborted writes. In a
    bucket, files of tasks unknown to the database are kept: if this database is a copy, they may
    belong to the original gateway.
    """
    strays = 0
    async for kept in output_store.written_before(now - _STRAY_S):
        shown = await store.shown_outputs(sorted({one.task_id for one in kept}))
        unknown = [one for one in kept if one.key not in shown and await _is_ours(store, one)]
        await output_store.delete(unknown)
        strays += len(unknown)
    if strays:
        _log.info("retention.strays_deleted", files=strays)
    return strays


async def _is_ours(store: SqlStore, kept: StoredFile) -> bool:
    return not kept.is_shared or await store.task(kept.task_id) is not None
