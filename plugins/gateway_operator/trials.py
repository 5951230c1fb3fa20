"""One generation of an endpoint from its page: at the operator's expense, and no sale.

It is in no book: nothing is written but two rows of the audit log.
"""

import asyncio
import base64
import contextlib
import math
import secrets
from collections import deque

import attrs
import structlog

from gateway.catalog.catalog import Registered
from gateway.errors import ActionRefused
from gateway.sandbox.pictures import shrink_picture
from gateway_check.generating import Generator
from gateway_check.live import LiveResult, make_one
from gateway_operator.actions.endpoints import find_endpoint
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk

MOST_AN_HOUR = 10
_HOUR_S = 3_600.0
_SIDE = 640
_MAX_TEXT_CHARS = 4_000
_log = structlog.get_logger()


@attrs.frozen(kw_only=True)
class Trial:
    """A generation of one endpoint; `ok` is None while it runs. Times are Unix seconds."""

    slug: str
    began_at: float
    ok: bool | None = None
    # What came, or why nothing did.
    found: str = ""
    seconds: float = 0.0
    # 10⁻⁶ US dollars; None: not known.
    cost_micros: int | None = None
    is_cost_told: bool = False
    text: str = ""
    # A small WebP, as a `data:` URL.
    picture: str = ""


@attrs.define
class Trials:
    """Makes one at a time, and keeps the newest of each endpoint in memory."""

    newest: dict[str, Trial] = attrs.field(factory=dict)
    _begun: deque[float] = attrs.field(factory=deque)
    # The endpoint of the one that runs; empty: none does.
    _busy: str = ""
    _task: asyncio.Task[None] | None = None

    async def begin(self, desk: Desk, actor: Actor, slug: str) -> None:
        """Begin a generation; its result will be in `newest`.

        Raises `WrongValue` for an unknown endpoint, and `ActionRefused` while another runs, while
        the vendor has no room beside paid work, and after ten in an hour. A repeated form begins
        nothing.
        """
        registered, now = find_endpoint(desk, slug), desk.now()
        self._check(registered, now)
        self._busy = slug
        try:
            # Before the vendor may bill it.
            await desk.records.note(
                NewAction(actor=actor, at=now, action="endpoint.make", subject=slug)
            )
        except BaseException as error:
            self._busy = ""
            if isinstance(error, AlreadyDone) and slug in self.newest:
                return
            raise
        self._begun.append(now)
        self.newest[slug] = Trial(slug=slug, began_at=now)
        self._task = asyncio.create_task(self._run(desk, actor, registered), name="trial")

    def _check(self, registered: Registered, now: float) -> None:
        if self._busy:
            raise ActionRefused(f"One of {self._busy} is being made. Wait until it has ended.")
        while self._begun and self._begun[0] <= now - _HOUR_S:
            self._begun.popleft()
        if len(self._begun) >= MOST_AN_HOUR:
            wait_s = self._begun[0] + _HOUR_S - now
            raise ActionRefused(
                f"{MOST_AN_HOUR} were made within an hour. Try again in "
                f"{math.ceil(wait_s / 60)} minutes."
            )
        if registered.upstream.pace.wait_s() > 0:
            raise ActionRefused("The vendor has no room beside paid work now. Try again later.")

    async def _run(self, desk: Desk, actor: Actor, registered: Registered) -> None:
        slug = registered.endpoint.slug
        try:
            self.newest[slug] = await self._make(desk, actor, registered)
        except Exception:  # noqa: BLE001 - nobody awaits this task
            _log.exception("trial.failed", slug=slug)
            found = "The gateway failed. The log has the reason: trial.failed."
            self.newest[slug] = attrs.evolve(self.newest[slug], ok=False, found=found)
        finally:
            self._busy = ""

    async def _make(self, desk: Desk, actor: Actor, registered: Registered) -> Trial:
        slug, pace = registered.endpoint.slug, registered.upstream.pace
        # Vendors may give the same id the same result.
        task_id = f"gateway-make-{secrets.token_hex(8)}"
        pace.submitted()
        with pace.slot():
            async with Generator.of(desk.settings, task_id) as generator:
                made = await make_one(registered, generator)
        cost = made.cost_micros if made.is_cost_told else None
        await desk.records.note(
            NewAction(
                actor=attrs.evolve(actor, request=None),
                at=desk.now(),
                action="endpoint.made",
                subject=slug,
                after={"ok": made.ok, "found": made.found, "costMicros": cost},
            )
        )
        return await _describe(self.newest[slug], made)

    async def close(self) -> None:
        """Cancel the running one, with its job at the vendor."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


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
