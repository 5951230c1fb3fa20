"""Deletes outputs past their retention, and what no task shows; the tasks themselves stay."""

import asyncio
import itertools

import structlog

from gateway.contracts import Clock, OutputStore, Store
from gateway.contracts.outputs import Kept, OutputStoreUnavailable

_SWEEP_S = 600.0
_TIDY_EVERY = 36  # sweeps: six hours
_BATCH = 100  # tasks a step
_STRAY_S = 86_400.0  # older than this, no lane that lives can still want it
_log = structlog.get_logger()


async def sweep_forever(store: Store, output_store: OutputStore, now: Clock) -> None:
    """Sweep at once and every ten minutes; tidy ten minutes after the start and every six hours."""
    for number in itertools.count():
        try:
            while await sweep(store, output_store, now()):
                pass
            if number % _TIDY_EVERY == 1:
                await tidy(store, output_store, now())
        except Exception:  # noqa: BLE001 - a lane's edge: the next sweep tries again
            _log.exception("retention.failed")
        await asyncio.sleep(_SWEEP_S)


async def sweep(store: Store, output_store: OutputStore, now: float) -> int:
    """Delete a batch of expired outputs; returns of how many tasks.

    Files go first: a crash in between leaves a task to be swept again, never an orphaned file.
    """
    gone: list[str] = []
    stuck: set[str] = set()  # they come first again each time, and must keep no other
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
                _log.warning("retention.stuck", task=task_id, error=str(error))
    if gone:
        await store.forget_outputs(gone)
        _log.info("retention.swept", tasks=len(gone))
    return len(gone)


async def tidy(store: Store, output_store: OutputStore, now: float) -> int:
    """Delete what is kept for nobody; returns how many files.

    Such files are of lanes that died between saving and completing, and halves of a write. In a
    bucket, those of a task that the database does not know are left alone: they may be of the
    gateway that this database is a copy of.
    """
    strays = 0
    async for kept in output_store.written_before(now - _STRAY_S):
        shown = await store.shown_outputs(sorted({one.task_id for one in kept}))
        unknown = [one for one in kept if one.key not in shown and await _is_ours(store, one)]
        await output_store.delete(unknown)
        strays += len(unknown)
    if strays:
        _log.info("retention.tidied", files=strays)
    return strays


async def _is_ours(store: Store, kept: Kept) -> bool:
    return not kept.is_shared or await store.task(kept.task_id) is not None
