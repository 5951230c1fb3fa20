"""Names who blocks the event loop, with the stack that blocks, while it blocks.

A thread asks the loop for an answer twice a second. Where none comes for a second, the stack
of the loop's thread tells whose code holds it: the innermost frame of a plugin, else the gateway.
Code that holds the interpreter itself (a regular expression that backtracks) holds this thread as
well; it is named as soon as it lets go. A plugin that blocks again and again is taken off sale.
"""

import asyncio
import contextlib
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from types import FrameType

import attrs
import structlog

from gateway.plugins.catalog import Catalog

GATEWAY = "the gateway"
UNKNOWN = "unknown"
REASON = "It has blocked the gateway three times within ten minutes: see loop.blocked in the log."
_LAP_S = 0.5  # between two looks at the loop
_SILENCE_S = 1.0  # that is no block yet
_PAUSE_S = 60.0  # between two reports about the same plugin
_MAX_FRAMES = 20
_MOST_BLOCKS = 3  # of one plugin within the window; with the last of them it is taken off sale
_WINDOW_S = 600.0
REST_S = 600.0  # that such a plugin sells nothing, at least
_log = structlog.get_logger()


def owners_of(modules: Mapping[str, str], catalog: Catalog) -> dict[str, str]:
    """Return whose a module is: those of plugins, of their providers, and what lies beside them."""
    found = {type(one.provider).__module__: one.plugin for one in catalog.upstreams()}
    found |= modules
    roots: dict[str, set[str]] = {}
    for module, plugin in found.items():
        roots.setdefault(module.partition(".")[0], set()).add(plugin)
    roots.pop("gateway", None)
    shared = {root: plugins.pop() for root, plugins in roots.items() if len(plugins) == 1}
    return shared | found


@contextlib.asynccontextmanager
async def watching(
    owners: Mapping[str, str], catalog: Catalog | None = None
) -> "AsyncIterator[Watchdog]":
    """Watch the running loop; a plugin that blocks it too often sells nothing for a while."""

    def rest(plugin: str) -> None:
        if catalog is not None:
            catalog.rest(plugin, REASON, pause_s=REST_S)

    watchdog = Watchdog(owners, rest)
    watchdog.start()
    try:
        yield watchdog
    finally:
        await watchdog.stop()


@attrs.frozen(kw_only=True)
class _Sighting:
    """What held the loop when it was looked at."""

    plugin: str
    stack: list[str]  # outermost first, and no values: they may be a buyer's


class Watchdog:
    """Watches one loop from a thread of its own, which never keeps the process alive."""

    def __init__(
        self, owners: Mapping[str, str], on_repeated: Callable[[str], None] = lambda _: None
    ) -> None:
        self._owners = owners
        self._on_repeated = on_repeated  # called on the loop, with the plugin's name
        self._blocks: dict[str, deque[float]] = {}  # when each plugin's last ones began
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._has_answered = False
        self._answered_at = self._lap_began = self._lap_cpu = 0.0
        self._silent_s = 0.0  # without an answer
        self._told: _Sighting | None = None  # of the block that goes on
        self._told_at: dict[str, float] = {}
        self._untold: Counter[str] = Counter()

    def start(self) -> None:
        """Begin; called on the loop that is to be watched."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._thread.start()

    async def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def _watch(self) -> None:
        self._lap_s()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing is left to watch
            self._ask()
            while not self._stopping.wait(_LAP_S):
                self._look(self._lap_s())

    def _ask(self) -> None:
        self._has_answered = False
        self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._answered_at = time.monotonic()
        self._has_answered = True

    def _lap_s(self) -> float:
        """Return how long the last lap took, as far as this process could run.

        One that this thread has overslept is the machine's sleep or a process on hold, unless the
        process has computed meanwhile: then its interpreter was held.
        """
        now, cpu = time.monotonic(), time.process_time()
        passed, busy = now - self._lap_began, cpu - self._lap_cpu
        self._lap_began, self._lap_cpu = now, cpu
        return passed if passed < 2 * _LAP_S else min(passed, max(busy, _LAP_S))

    def _look(self, lap_s: float) -> None:
        if self._has_answered and lap_s < _SILENCE_S:
            self._silent_s += min(max(self._answered_at - self._lap_began + lap_s, 0.0), lap_s)
            self._end()
            self._ask()
            return
        self._silent_s += lap_s
        if self._told is None and self._silent_s >= _SILENCE_S:
            # an answer after such a lap: the interpreter was held, perhaps by another thread
            self._tell(self._sighting(UNKNOWN if self._has_answered else GATEWAY))
        if self._has_answered:
            self._ask()

    def _sighting(self, otherwise: str) -> _Sighting:
        """Return what the loop's thread does at this moment."""
        frames = list(_outwards(sys._current_frames().get(self._loop_thread)))  # noqa: SLF001 - documented
        of_plugins = [at for at, frame in enumerate(frames) if self._owner(frame) is not None]
        shown = frames[: of_plugins[-1] + 1] if of_plugins else frames
        plugin = self._owner(frames[of_plugins[0]]) if of_plugins else None
        places = [_place(frame) for frame in shown[:_MAX_FRAMES]]
        return _Sighting(plugin=plugin or otherwise, stack=places[::-1])

    def _owner(self, frame: FrameType) -> str | None:
        module = str(frame.f_globals.get("__name__", ""))
        while module and module not in self._owners:
            module = module.rpartition(".")[0]
        return self._owners.get(module)

    def _count(self, plugin: str, now: float) -> None:
        """Count a plugin's block; the gateway's own and those of unknown origin are not counted."""
        if plugin in (GATEWAY, UNKNOWN):
            return
        blocks = self._blocks.setdefault(plugin, deque(maxlen=_MOST_BLOCKS))
        blocks.append(now)
        if len(blocks) == _MOST_BLOCKS and now - blocks[0] < _WINDOW_S:
            blocks.clear()
            self._loop.call_soon_threadsafe(self._on_repeated, plugin)

    def _tell(self, sighting: _Sighting) -> None:
        """Log a block, unless the same plugin was named a moment ago."""
        now, plugin = time.monotonic(), sighting.plugin
        self._count(plugin, now)
        if now - self._told_at.get(plugin, -_PAUSE_S) < _PAUSE_S:
            self._untold[plugin] += 1
            self._told = attrs.evolve(sighting, stack=[])
            return
        self._told, self._told_at[plugin] = sighting, now
        _log.warning(
            "loop.blocked",
            plugin=plugin,
            seconds=round(self._silent_s, 1),
            frames=sighting.stack,
            untold=self._untold.pop(plugin, 0),  # blocks since the last such line
        )

    def _end(self) -> None:
        told, seconds = self._told, round(self._silent_s, 1)
        self._told, self._silent_s = None, 0.0
        if told is not None and told.stack:
            _log.warning("loop.released", plugin=told.plugin, seconds=seconds)


def _outwards(frame: FrameType | None) -> "list[FrameType]":
    """Return a stack's frames, the innermost first."""
    return [each for each, _ in traceback.walk_stack(frame)] if frame is not None else []


def _place(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}"
