"""One generation of an endpoint from its page: at the operator's expense, and no sale.

It is in no book: nothing is written but two rows of the audit log, which also limit all nodes.
"""

import asyncio
import base64
import contextlib
import secrets
from collections.abc import Mapping
from typing import Any

import attrs
import structlog

from gateway.catalog.registered import Registered
from gateway.errors import ActionRefused
from gateway.sandbox.pictures import shrink_picture
from gateway_check.generating import Generator
from gateway_check.live import LiveResult, make_one
from gateway_operator.actions.endpoints import find_endpoint
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.sql import trials
from gateway_operator.sql.trials import StoredTrial

_STOPPED = "The gateway stopped meanwhile."
_SIDE = 640
_MAX_TEXT_CHARS = 4_000
_log = structlog.get_logger()


@attrs.frozen(kw_only=True)
class Trial:
    """A generation of one endpoint; `ok` is None while it runs. Times are Unix seconds."""

    slug: str
    began_at: float
    ok: bool | None = None
    # The result, or the reason why there is none.
    found: str = ""
    seconds: float = 0.0
    # 10⁻⁶ US dollars; None: not known.
    cost_micros: int | None = None
    is_cost_told: bool = False
    text: str = ""
    # A small WebP, as a `data:` URL.
    picture: str = ""
    # Whether another node made it, or this one before its start: only the audit log knows it.
    is_elsewhere: bool = False


@attrs.define
class Trials:
    """Makes one at a time, and keeps the newest of each endpoint in memory."""

    newest: dict[str, Trial] = attrs.field(factory=dict)
    # The endpoint of the one that runs; empty: none does.
    _busy: str = ""
    _task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether one is in progress in this process."""
        return bool(self._busy)

    async def begin(self, desk: Desk, actor: Actor, slug: str) -> None:
        """Begin a generation; its result will be in `newest`.

        Raises `WrongValue` for an unknown endpoint, and `ActionRefused` while another runs, while
        the vendor has no room beside paid work, and after ten in an hour. A repeated form begins
        nothing.
        """
        registered, now = find_endpoint(desk, slug), desk.now()
        self._check(registered)
        self._busy = slug
        action = NewAction(actor=actor, at=now, action=trials.BEGUN, subject=slug)
        try:
            # Before the vendor may bill it.
            await desk.records.act(trials.check_room, _timeouts(desk), now, action=action)
        except AlreadyDone:
            self._busy = ""
            return
        except BaseException:
            self._busy = ""
            raise
        self.newest[slug] = Trial(slug=slug, began_at=now)
        self._task = asyncio.create_task(self._run(desk, actor, registered), name="trial")

    async def find(self, desk: Desk, slug: str) -> Trial | None:
        """Return the newest one of an endpoint, of any node; None if there was none."""
        stored: StoredTrial | None = await desk.store.sum(trials.find_newest, slug)
        mine = self.newest.get(slug)
        if stored is None or (mine is not None and mine.began_at >= stored.begun.at):
            return mine
        return _read(stored, _timeouts(desk).get(slug, 0.0), desk.now())

    def _check(self, registered: Registered) -> None:
        if self._busy:
            raise ActionRefused(f"One of {self._busy} is being made. Wait until it has ended.")
        if registered.unchecked:
            raise ActionRefused(f"Nothing can be made: {registered.unchecked}")
        if registered.upstream.pace.wait_s() > 0:
            raise ActionRefused("The vendor has no room beside paid work now. Try again later.")

    async def _run(self, desk: Desk, actor: Actor, registered: Registered) -> None:
        slug = registered.endpoint.slug
        try:
            self.newest[slug] = await self._make(desk, actor, registered)
        except asyncio.CancelledError:
            await self._note_failure(desk, actor, slug, _STOPPED)
            raise
        except Exception:  # noqa: BLE001 - nobody awaits this task
            _log.exception("trial.failed", slug=slug)
            found = "The gateway failed. The log has the reason: trial.failed."
            await self._note_failure(desk, actor, slug, found)
        finally:
            self._busy = ""

    async def _note_failure(self, desk: Desk, actor: Actor, slug: str, found: str) -> None:
        """Note the end, so that other nodes need not wait for the timeout."""
        self.newest[slug] = attrs.evolve(self.newest[slug], ok=False, found=found)
        try:
            await _note_end(desk, actor, slug, ok=False, found=found)
        except Exception:  # noqa: BLE001 - as above
            _log.exception("trial.end_not_noted", slug=slug)

    async def _make(self, desk: Desk, actor: Actor, registered: Registered) -> Trial:
        slug, pace = registered.endpoint.slug, registered.upstream.pace
        # Vendors may give the same id the same result.
        task_id = f"gateway-make-{secrets.token_hex(8)}"
        pace.submitted()
        with registered.upstream.slot():
            async with Generator.of(desk.settings, task_id) as generator:
                made = await make_one(registered, generator)
        cost = made.cost_micros if made.is_cost_told else None
        await _note_end(desk, actor, slug, ok=made.ok, found=made.found, cost_micros=cost)
        return await _describe(self.newest[slug], made)

    async def close(self) -> None:
        """Cancel the running one, with its job at the vendor."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


def _timeouts(desk: Desk) -> Mapping[str, float]:
    every = desk.catalog.everything()
    return {one.endpoint.slug: one.endpoint.timeout_s for one in every}


async def _note_end(
    desk: Desk, actor: Actor, slug: str, *, ok: bool, found: str, cost_micros: int | None = None
) -> None:
    await desk.records.note(
        NewAction(
            actor=attrs.evolve(actor, request=None),
            at=desk.now(),
            action=trials.ENDED,
            subject=slug,
            after={"ok": ok, "found": found, "costMicros": cost_micros},
        )
    )


def _read(stored: StoredTrial, timeout_s: float, now: float) -> Trial:
    """Return a generation as the audit log has it."""
    begun, ended = stored.begun, stored.ended
    trial = Trial(slug=begun.subject, began_at=begun.at, is_elsewhere=True)
    if ended is None:
        is_lost = now >= begun.at + timeout_s
        return attrs.evolve(trial, ok=False, found=_STOPPED) if is_lost else trial
    after: Any = ended.after
    return attrs.evolve(
        trial,
        ok=after["ok"],
        found=after["found"],
        seconds=max(0.0, ended.at - begun.at),
        cost_micros=after["costMicros"],
        is_cost_told=after["costMicros"] is not None,
    )


async def _describe(trial: Trial, made: LiveResult) -> Trial:
    picture = next((one for one in made.outputs if one.width), None)
    shown = ""
    if picture is not None:
        (small,) = await shrink_picture(picture.data, [_SIDE])
        shown = f"data:image/webp;base64,{base64.b64encode(small).decode()}"
    return attrs.evolve(
        trial,
        ok=made.ok,
        found=made.found,
        seconds=made.seconds,
        cost_micros=made.cost_micros if made.is_cost_told else made.registered.endpoint.cost_micros,
        is_cost_told=made.is_cost_told,
        text=(made.text or "")[:_MAX_TEXT_CHARS],
        picture=shown,
    )
