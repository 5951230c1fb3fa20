"""Shortages of this machine, such as descriptors or disk space. They are no vendor's failure."""

import errno
from collections.abc import Callable, Iterator, Mapping

import attrs
import structlog

from gateway.contracts import Clock
from gateway.contracts.parts import Condition
from gateway.sandbox import SandboxLost

_LACKS: Mapping[int, str] = {
    errno.EMFILE: "file descriptors",
    errno.ENFILE: "file descriptors",
    errno.ENOMEM: "memory",
    errno.ENOBUFS: "memory",
    errno.ENOSPC: "disk space",
    errno.EDQUOT: "disk space",
}
_ADVICE: Mapping[str, str] = {
    "file descriptors": "Raise the limit of open files (LimitNOFILE=65536).",
    "processes": "Raise the limit of processes (TasksMax), and check what else runs here.",
    "memory or time": "Give the machine more memory or processors, or lower GATEWAY_WORKERS.",
    "memory": "Give the machine more memory, or lower GATEWAY_WORKERS.",
    "disk space": "Free some space, or enlarge the volume.",
}
# Errors examined of one chain of causes.
_MAX_ERRORS = 50
# How long the operator sees a shortage after its last report.
_SHOWN_S = 600.0
# How long it is remembered for a task that meets no further one.
_REMEMBERED_S = 7200.0
# A shortage lasts longer than most failed writes: the last pause is repeated this often.
_MORE_RETRIES = 8
_log = structlog.get_logger()


def find_shortage(error: BaseException) -> str | None:
    """Return what this machine lacked if that caused the error, directly or not; else None."""
    lost: SandboxLost | None = None
    for one in _causes_of(error):
        if isinstance(one, OSError) and (lacked := _LACKS.get(one.errno or 0)):
            return lacked
        if isinstance(one, SandboxLost):
            lost = lost or one
    if lost is None:
        return None
    return "memory or time" if lost.has_begun else "processes"


def has_begun(error: BaseException) -> bool:
    """Whether a sandboxed process had begun the work that a shortage ended."""
    return any(isinstance(one, SandboxLost) and one.has_begun for one in _causes_of(error))


def _causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those behind it, also those hidden by `from None`."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _MAX_ERRORS:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        waiting += [each for each in (one.__cause__, one.__context__, *inner) if each is not None]


@attrs.define(eq=False, repr=False)
class Shortages:
    """Notes shortages for the operator, and gives work that they interrupt more time."""

    now: Clock
    # When each was noted last, in Unix seconds.
    _seen: dict[str, float] = attrs.field(factory=dict, init=False)
    # When each task was interrupted by a shortage for the first and the last time.
    _spans: dict[str, tuple[float, float]] = attrs.field(factory=dict, init=False)

    def note(self, error: Exception, task_id: str) -> str | None:
        """Note the shortage that caused an error, and return it; None if there was none."""
        lacked = find_shortage(error)
        if lacked is not None:
            _log.warning("machine.short", lacks=lacked, task=task_id)
            self._seen[lacked] = now = self.now()
            self._note_span(task_id, now)
        return lacked

    def _note_span(self, task_id: str, now: float) -> None:
        oldest = now - _REMEMBERED_S
        self._spans = {task: span for task, span in self._spans.items() if span[1] > oldest}
        first, _ = self._spans.get(task_id, (now, now))
        self._spans[task_id] = (first, now)

    def find_age_s(self, task_id: str) -> float:
        """Return the seconds between a task's first and last shortage; 0 if there was none."""
        first, last = self._spans.get(task_id, (0.0, 0.0))
        return last - first

    def pauses(
        self, pauses_s: tuple[float, ...], task_id: str
    ) -> Callable[[Exception], float | None]:
        """Return a function that returns the pause before the next retry, or None.

        `pauses_s` are those for other errors, and for an input whose sandboxed process was ended:
        it may be the cause, and it holds a slot.
        """
        longer_s = (*pauses_s, *pauses_s[-1:] * _MORE_RETRIES)
        tried = 0

        def next_pause_s(error: Exception) -> float | None:
            nonlocal tried
            is_waiting = self.note(error, task_id) is not None and not has_begun(error)
            allowed = longer_s if is_waiting else pauses_s
            tried += 1
            return allowed[tried - 1] if tried <= len(allowed) else None

        return next_pause_s

    async def find_conditions(self) -> list[Condition]:
        """Return a condition for each recent shortage."""
        since = self.now() - _SHOWN_S
        return [
            Condition(
                name="machine_short",
                subject=lacked.replace(" ", "_"),
                level="warn",
                title=f"This machine is short of {lacked}",
                text="Paid tasks wait for it. After half an hour they try three times more, then "
                "they fail, with a refund due.",
                action=_ADVICE[lacked],
            )
            for lacked, at in self._seen.items()
            if at > since
        ]
