"""Deletes outputs past their retention; the task stays and says that they are gone."""

import asyncio

import structlog

from gateway.contracts import Artifacts, Clock, Store

_SWEEP_S = 600.0
_BATCH = 100  # tasks a step
_log = structlog.get_logger()


async def sweep_forever(store: Store, artifacts: Artifacts, now: Clock) -> None:
    """Sweep at once and every ten minutes."""
    while True:
        try:
            while await sweep(store, artifacts, now()):
                pass
        except Exception:  # noqa: BLE001 - a lane's edge: the next sweep tries again
            _log.exception("retention.failed")
        await asyncio.sleep(_SWEEP_S)


async def sweep(store: Store, artifacts: Artifacts, now: float) -> int:
    """Delete a batch of expired outputs; returns of how many tasks.

    Files go first: a crash in between leaves a task to be swept again, never an orphaned file.
    """
    expired = await store.expired_outputs(now=now, limit=_BATCH)
    gone = []
    for task_id, outputs in expired:
        try:
            await artifacts.delete(outputs)
            gone.append(task_id)
        except OSError as error:
            _log.warning("retention.stuck", task=task_id, error=error.strerror)
    if gone:
        await store.forget_outputs(gone)
        _log.info("retention.swept", tasks=len(gone))
    return len(gone)
