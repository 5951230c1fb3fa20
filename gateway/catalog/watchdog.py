"""Reports the plugin that blocks the event loop, with its stack, while it blocks.

A thread pings the loop twice a second. If the loop does not respond for a second, the stack of its
thread shows whose code blocks: the innermost frame of a plugin, else the gateway. Code that holds
the GIL, such as a backtracking regular expression, stops this thread as well and is reported
afterwards. A plugin that blocks three times in ten minutes is taken off sale.
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

from gateway.catalog.catalog import Catalog
from gateway.telemetry import signals

GATEWAY = "the gateway"
UNKNOWN = "unknown"
REASON = "It has blocked the gateway three times within ten minutes: see loop.blocked in the log."
_MAX_FRAMES = 20
# A plugin that blocks this often within the window is off sale for at least PAUSE_S.
_MAX_BLOCKS = 3
_WINDOW_S = 600.0
PAUSE_S = 600.0
_log = structlog.get_logger()


def owners_of(modules: Mapping[str, str], catalog: Catalog) -> dict[str, str]:
    """Map modules to plugins: plugin modules, modules of providers, and their root packages.

    `modules` maps the plugins' own modules. A package that two plugins share belongs to neither.
    """
    found = {type(one.provider).__module__: one.plugin for one in catalog.upstreams()}
    found |= modules
    roots: dict[str, set[str]] = {}
    for module, plugin in found.items():
        roots.setdefault(module.partition(".")[0], set()).add(plugin)
    roots.pop("gateway", None)
    shared = {root: plugins.pop() for root, plugins in roots.items() if len(plugins) == 1}
    return shared | found


@attrs.frozen(kw_only=True, eq=False, repr=False)
class WatchdogTiming:
    """Durations in seconds; only tests change them."""

    # Between two checks of the loop.
    tick_s: float = 0.5
    # Shorter delays of the loop are not reported.
    silence_s: float = 1.0
    # Between two reports about the same plugin.
    report_pause_s: float = 60.0


@contextlib.asynccontextmanager
async def watch_loop(
    owners: Mapping[str, str],
    catalog: Catalog | None = None,
    *,
    timing: WatchdogTiming | None = None,
) -> "AsyncIterator[Watchdog]":
    """Watch the running loop; plugins that block too often are taken off sale."""

    def pause(plugin: str) -> None:
        if catalog is not None:
            catalog.pause_plugin(plugin, REASON, pause_s=PAUSE_S)

    watchdog = Watchdog(owners, pause, timing=timing)
    watchdog.start()
    try:
        yield watchdog
    finally:
        await watchdog.stop()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Sample:
    """The state of the loop's thread at a check."""

    plugin: str
    # Outermost frame first, without values of variables: they may be a buyer's.
    stack: list[str]


class Watchdog:
    """Watches one loop from a daemon thread.

    `on_repeated` is called on the loop with the name of a plugin that blocks too often.
    """

    def __init__(
        self,
        owners: Mapping[str, str],
        on_repeated: Callable[[str], None] = lambda _: None,
        *,
        timing: WatchdogTiming | None = None,
    ) -> None:
        self._owners = owners
        self._on_repeated = on_repeated
        self.timing = timing or WatchdogTiming()
        # When each plugin's last blocks were seen.
        self._blocks: dict[str, deque[float]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._has_answered = False
        self._answered_at = self._tick_started = self._tick_cpu = 0.0
        # How long the loop has not responded.
        self._silent_s = 0.0
        # The report about the current block.
        self._reported: _Sample | None = None
        self._reported_at: dict[str, float] = {}
        self._unreported: Counter[str] = Counter()
        # By plugin: end and duration of its longest recent block.
        self._longest: dict[str, tuple[float, float]] = {}

    def start(self) -> None:
        """Start the thread; call this on the loop to watch."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._thread.start()

    async def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def longest_blocks(self) -> dict[str, float]:
        """Return each plugin's longest block of the last ten minutes, in seconds."""
        now = time.monotonic()
        return {
            plugin: seconds
            for plugin, (at, seconds) in dict(self._longest).items()
            if now - at < _WINDOW_S
        }

    def _note_longest(self, plugin: str, seconds: float) -> None:
        now = time.monotonic()
        at, longest = self._longest.get(plugin, (now, 0.0))
        if seconds >= longest or now - at >= _WINDOW_S:
            self._longest[plugin] = (now, seconds)

    def _watch(self) -> None:
        self._measure_tick()
        # RuntimeError: the loop is closed.
        with contextlib.suppress(RuntimeError):
            self._ask_loop()
            while not self._stopping.wait(self.timing.tick_s):
                self._check_tick(self._measure_tick())

    def _ask_loop(self) -> None:
        self._has_answered = False
        self._loop.call_soon_threadsafe(self._note_answer)

    def _note_answer(self) -> None:
        self._answered_at = time.monotonic()
        self._has_answered = True

    def _measure_tick(self) -> float:
        """Return the seconds of the last tick in which this process could run.

        If the thread overslept, either the machine slept or the process was stopped, which does not
        count; or the GIL was held, which counts. The process's CPU time shows which.
        """
        tick_s, now, cpu = self.timing.tick_s, time.monotonic(), time.process_time()
        passed, busy = now - self._tick_started, cpu - self._tick_cpu
        self._tick_started, self._tick_cpu = now, cpu
        return passed if passed < 2 * tick_s else min(passed, max(busy, tick_s))

    def _check_tick(self, tick_s: float) -> None:
        if self._has_answered and tick_s < self.timing.silence_s:
            self._silent_s += min(max(self._answered_at - self._tick_started + tick_s, 0.0), tick_s)
            self._end_block()
            self._ask_loop()
            return
        self._silent_s += tick_s
        if self._reported is None and self._silent_s >= self.timing.silence_s:
            # If the loop has responded by now, the GIL was held, perhaps by another thread.
            self._report_block(self._inspect(UNKNOWN if self._has_answered else GATEWAY))
        if self._has_answered:
            self._ask_loop()

    def _inspect(self, otherwise: str) -> _Sample:
        """Inspect the loop's thread; the plugin is `otherwise` if it runs none."""
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - documented
        frames = [each for each, _ in traceback.walk_stack(frame)] if frame is not None else []
        of_plugins = [at for at, frame in enumerate(frames) if self._owner_of(frame) is not None]
        shown = frames[: of_plugins[-1] + 1] if of_plugins else frames
        plugin = self._owner_of(frames[of_plugins[0]]) if of_plugins else None
        places = [
            f"{each.f_code.co_filename}:{each.f_lineno} {each.f_code.co_qualname}"
            for each in shown[:_MAX_FRAMES]
        ]
        return _Sample(plugin=plugin or otherwise, stack=places[::-1])

    def _owner_of(self, frame: FrameType) -> str | None:
        module = str(frame.f_globals.get("__name__", ""))
        while module and module not in self._owners:
            module = module.rpartition(".")[0]
        return self._owners.get(module)

    def _count_block(self, plugin: str, now: float) -> None:
        """Count a plugin's block; blocks of the gateway and of unknown origin are not counted."""
        if plugin in (GATEWAY, UNKNOWN):
            return
        blocks = self._blocks.setdefault(plugin, deque(maxlen=_MAX_BLOCKS))
        blocks.append(now)
        if len(blocks) == _MAX_BLOCKS and now - blocks[0] < _WINDOW_S:
            blocks.clear()
            self._loop.call_soon_threadsafe(self._on_repeated, plugin)

    def _report_block(self, sighting: _Sample) -> None:
        """Log a block, unless the same plugin was reported less than a minute ago."""
        now, plugin, pause_s = time.monotonic(), sighting.plugin, self.timing.report_pause_s
        self._count_block(plugin, now)
        if now - self._reported_at.get(plugin, -pause_s) < pause_s:
            self._unreported[plugin] += 1
            self._reported = attrs.evolve(sighting, stack=[])
            return
        self._reported, self._reported_at[plugin] = sighting, now
        _log.warning(
            "loop.blocked",
            plugin=plugin,
            seconds=round(self._silent_s, 1),
            frames=sighting.stack,
            # Blocks since the last report.
            unreported=self._unreported.pop(plugin, 0),
        )

    def _end_block(self) -> None:
        reported, seconds = self._reported, round(self._silent_s, 1)
        if reported is not None:
            signals.loop_blocked.send(plugin=reported.plugin, seconds=self._silent_s)
            self._note_longest(reported.plugin, self._silent_s)
        self._reported, self._silent_s = None, 0.0
        if reported is not None and reported.stack:
            _log.warning("loop.released", plugin=reported.plugin, seconds=seconds)
