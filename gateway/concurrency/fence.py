"""A fence around plugins' code: a failure costs the plugin its own feature and nothing else.

A call through the fence ends in time, and raises only `Fenced` and the errors that its caller
expects. Each failure is logged, and remembered for the operator's pages and alarms.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import attrs
import structlog

from gateway.errors import text_of

Value = TypeVar("Value")
Expected = tuple[type[Exception], ...]

# A call that fails for every request writes one log line in this time.
_LOG_EVERY_S = 60.0
# How long a failure is remembered after it has occurred last.
_REMEMBERED_S = 3_600.0
# A call that did not return in time is not made again for this long.
_REST_S = 60.0
# How long a cancelled call may clean up.
_GRACE_S = 2.0
# The names of the log lines of some steps.
_EVENTS = {"work": "sweep.failed", "run": "background.failed"}
_log = structlog.get_logger()


@attrs.frozen
class Owner:
    """The plugin that a call belongs to, and its part, if any."""

    plugin: str
    part: str = ""


@attrs.define(eq=False, repr=False)
class Fault:
    """The failures of one call of a plugin."""

    owner: Owner
    step: str
    # The class of the last error. Its text is in the log only: it may quote a buyer.
    error: str
    count: int
    # Unix seconds of the first and the last failure.
    since: float
    last_at: float
    # Monotonic time until which the call is not made, because it did not return in time.
    rests_until: float = 0.0
    _logged_at: float = attrs.field(default=float("-inf"), init=False)

    def wants_line(self, now: float) -> bool:
        """Whether a log line is due now."""
        if now - self._logged_at < _LOG_EVERY_S:
            return False
        self._logged_at = now
        return True


class Fenced(Exception):
    """A plugin's call failed; `error` is the reason."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {text_of(error)}")
        self.error = error


class Fence:
    """Calls plugins' functions, and remembers their failures."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._faults: dict[tuple[Owner, str], Fault] = {}

    def faults(self) -> list[Fault]:
        """Return the failures of the last hour."""
        oldest = self._now() - _REMEMBERED_S
        self._faults = {key: one for key, one in self._faults.items() if one.last_at >= oldest}
        return list(self._faults.values())

    def run(self, owner: Owner, step: str, work: Callable[[], Value]) -> Value:
        """Return the result of a plain function; raises `Fenced` if it raises anything."""
        try:
            return work()
        except BaseException as error:
            self.note(owner, step, error)
            raise Fenced(error) from error

    async def wait(
        self,
        owner: Owner,
        step: str,
        work: Callable[[], Awaitable[Value]],
        *,
        limit_s: float | None,
        expected: Expected = (),
    ) -> Value:
        """Return the result of an `async` function, which runs in a task of its own.

        Raises `expected` errors, and `Fenced` if it raises another one or exceeds `limit_s`. Then
        it is cancelled, and left behind if it does not end. A caller that is cancelled cancels it.
        """
        fault = self._faults.get((owner, step))
        if fault is not None and time.monotonic() < fault.rests_until:
            raise Fenced(TimeoutError(f"{step} did not return in time, and rests"))
        running = asyncio.create_task(_find_outcome(work), name=f"{owner.part} {step}")
        try:
            await asyncio.wait((running,), timeout=limit_s)
        except asyncio.CancelledError:
            await _stop(running)
            raise
        is_late = not running.done()
        if is_late:
            await _stop(running)
            error: BaseException | None = TimeoutError(f"{step} did not return in {limit_s:g} s")
        else:
            value, error = running.result()
            if error is None:
                return value  # type: ignore[no-any-return]
        if isinstance(error, expected):
            raise error
        assert error is not None  # noqa: S101 - for mypy
        self.note(owner, step, error)
        if is_late:
            self._faults[owner, step].rests_until = time.monotonic() + _REST_S
        raise Fenced(error) from error

    def note(self, owner: Owner, step: str, error: BaseException) -> None:
        """Remember and log a failure."""
        now, name = self._now(), type(error).__name__
        fault = self._faults.get((owner, step))
        if fault is None:
            fault = Fault(owner, step, name, 0, now, now)
            self._faults[owner, step] = fault
        fault.error, fault.last_at = name, now
        fault.count += 1
        if fault.wants_line(time.monotonic()):
            about = {"part": owner.part} if owner.part else {}
            _log.error(
                _EVENTS.get(step, "part.failed"),
                plugin=owner.plugin,
                step=step,
                exc_info=error,
                **about,
            )


def is_plugins_own(error: BaseException) -> bool:
    """Whether an error is of the code that raised it, and no cancellation of this task."""
    if not isinstance(error, asyncio.CancelledError):
        return True
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


async def _stop(running: asyncio.Task[Any]) -> None:
    """Cancel a task, and leave it behind if it does not end."""
    running.cancel()
    await asyncio.wait((running,), timeout=_GRACE_S)


async def _find_outcome(work: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
    """Return the value, or the error.

    A task that ended by `SystemExit` would end the event loop, and the process with it.
    """
    try:
        waiting = work()
        if not inspect.isawaitable(waiting):
            raise TypeError(f"it returns a {type(waiting).__name__}; write `async def`")  # noqa: TRY301
        return await waiting, None
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        return None, error
