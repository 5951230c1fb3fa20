"""A pytest plugin that prints a time profile of a test run: `make test-profile`.

Times are measured in each test process, in seconds: wall time, CPU time of the process and of the
child processes that it has waited for, and idle time. Idle time is sampled: a thread reads the
stack of the main thread, and counts a sample if the event loop or a system call waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import selectors
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import attrs
import cattrs
import pytest

_ROOT = Path(__file__).parents[1]
_SAMPLE_S = 0.01
_TOP = 20
_REPORT = "profile"
# Functions whose caller is idle while they are at the top of the stack.
_WAITING = {"wait", "_try_wait", "_wait_for_tstate_lock", "join", "sleep", "get", "readinto"}
_WAITING |= {"acquire", "accept", "communicate", "result", "recv", "_communicate"}


@attrs.define
class Spent:
    """Time spent in tests of one folder, in one test or in one fixture."""

    count: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    idle_s: float = 0.0

    def add(self, other: Spent) -> None:
        self.count += other.count
        self.wall_s += other.wall_s
        self.cpu_s += other.cpu_s
        self.idle_s += other.idle_s


@attrs.define
class Profile:
    """The measurements of one test process."""

    tests: dict[str, Spent] = attrs.field(factory=dict)
    fixtures: dict[str, Spent] = attrs.field(factory=dict)
    waits: dict[str, float] = attrs.field(factory=dict)
    collect: Spent = attrs.field(factory=Spent)


class Sampler(threading.Thread):
    """Counts how long the main thread is idle, and at which line.

    The event loop's own waits are measured by `TimedSelector`; other waits are sampled.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True, name="profile-sampler")
        self.idle_s = 0.0
        self.waits: dict[str, float] = defaultdict(float)
        self._main = threading.main_thread().ident or 0
        self._is_over = threading.Event()

    def run(self) -> None:
        """Sample until the session ends."""
        before = time.perf_counter()
        while not self._is_over.wait(_SAMPLE_S):
            now = time.perf_counter()
            frame = _frames().get(self._main)
            if frame is not None and frame.f_code.co_name in _WAITING:
                self.count(now - before, _caller(frame))
            before = now

    def count(self, seconds: float, place: str) -> None:
        """Add idle time at a place."""
        self.idle_s += seconds
        self.waits[place] += seconds

    def stop(self) -> None:
        self._is_over.set()


def _frames() -> dict:
    # CPython 3.11 holds a lock here that a starting thread takes: a collection that runs now may
    # close a socket, let that thread run, and wait for it for ever.
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        gc.enable()


def timed_selector(sampler: Sampler) -> type[selectors.BaseSelector]:
    """Return a selector that reports the idle time of an event loop."""
    usual = selectors.DefaultSelector

    class TimedSelector(usual):
        def select(self, timeout: float | None = None) -> list:
            before = time.perf_counter()
            events = super().select(timeout)
            idle_s = time.perf_counter() - before
            if idle_s > _SAMPLE_S / 10 and threading.current_thread() is threading.main_thread():
                sampler.count(idle_s, _awaited_in(sys._getframe(1)))
            return events

    return TimedSelector


def _caller(frame: FrameType) -> str:
    """Return the innermost line of this repository on a stack, as `path:line function`."""
    current: FrameType | None = frame
    while current is not None:
        if ours := _ours(current.f_code, current.f_lineno):
            return ours
        current = current.f_back
    return "elsewhere"


def _awaited_in(frame: FrameType) -> str:
    """Return the line that the main task of the running event loop awaits."""
    current: FrameType | None = frame
    while current is not None:
        task = current.f_locals.get("future")
        if current.f_code.co_name == "run_until_complete" and isinstance(task, asyncio.Task):
            return _awaited(task) or _caller(current)
        current = current.f_back
    return "elsewhere"


def _awaited(task: asyncio.Task) -> str | None:
    """Return the innermost line of this repository that a task awaits."""
    place = None
    awaited = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            place = _ours(frame.f_code, frame.f_lineno) or place
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    return place


def _ours(code: CodeType, line: int) -> str | None:
    path = Path(code.co_filename)
    if ".venv" in path.parts or not path.is_relative_to(_ROOT):
        return None
    return f"{path.relative_to(_ROOT)}:{line} {code.co_name}"


class Recorder:
    """Measures the tests and fixtures of this process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.profile = Profile()
        self.sampler = Sampler()
        self._nested = Spent()

    def pytest_sessionstart(self) -> None:
        selectors.DefaultSelector = timed_selector(self.sampler)
        self.sampler.start()

    @contextlib.contextmanager
    def _measured(self) -> Iterator[Spent]:
        spent = Spent(count=1)
        wall, cpu, idle = time.perf_counter(), _cpu_s(), self.sampler.idle_s
        yield spent
        spent.wall_s = time.perf_counter() - wall
        spent.cpu_s = _cpu_s() - cpu
        spent.idle_s = self.sampler.idle_s - idle

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        """Measure imports and collection."""
        with self._measured() as spent:
            result = yield
        self.profile.collect.add(spent)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure a whole test, with the setup and the teardown of its fixtures."""
        with self._measured() as spent:
            result = yield
        self.profile.tests.setdefault(item.nodeid, Spent()).add(spent)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Iterator[None]:
        """Measure a fixture's setup, without the fixtures that it requests."""
        outer, self._nested = self._nested, Spent()
        with self._measured() as spent:
            result = yield
        inner, self._nested = self._nested, outer
        self._nested.add(spent)
        name = f"{fixturedef.baseid or '.'}::{fixturedef.argname}"
        own = attrs.evolve(
            spent,
            wall_s=spent.wall_s - inner.wall_s,
            cpu_s=spent.cpu_s - inner.cpu_s,
            idle_s=spent.idle_s - inner.idle_s,
        )
        self.profile.fixtures.setdefault(name, Spent()).add(own)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        """Measure the teardown of all fixtures of a test together."""
        with self._measured() as spent:
            result = yield
        self.profile.fixtures.setdefault("(tear-down)", Spent()).add(spent)
        return result

    def pytest_sessionfinish(self) -> None:
        """Send a worker's measurements to the process that prints them."""
        self.sampler.stop()
        self.profile.waits = dict(self.sampler.waits)
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[_REPORT] = json.dumps(cattrs.unstructure(self.profile))


class Printer:
    """Prints the measurements of all test processes."""

    def __init__(self, own: Recorder, json_path: str | None) -> None:
        self.profiles = [own.profile]
        self.json_path = json_path
        self.started = time.perf_counter()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        """Receive the measurements of a worker that has ended."""
        report = getattr(node, "workeroutput", {}).get(_REPORT)
        if report:
            self.profiles.append(cattrs.structure(json.loads(report), Profile))

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Print the tables."""
        line = terminalreporter.write_line
        tests, fixtures = self._sum("tests"), self._sum("fixtures")
        waits: dict[str, float] = defaultdict(float)
        for profile in self.profiles:
            for place, seconds in profile.waits.items():
                waits[place] += seconds
        folders: dict[str, Spent] = defaultdict(Spent)
        for test, spent in tests.items():
            folders[str(Path(test.split("::")[0]).parent)].add(spent)
        collect = Spent()
        for profile in self.profiles:
            collect.add(profile.collect)
        total = Spent()
        for spent in folders.values():
            total.add(spent)
        _table(
            line,
            "folder",
            {**folders, "(imports)": collect, "(all tests)": total},
            len(folders) + 2,
        )
        _table(line, "fixture, without those it uses", fixtures, 2 * _TOP)
        _table(line, "slowest test", tests, _TOP)
        line(f"\n{'idle s':>9}  awaited at")
        for place, seconds in sorted(waits.items(), key=lambda item: -item[1])[: 2 * _TOP]:
            line(f"{seconds:9.1f}  {place}")
        if self.json_path:
            kept = {"tests": tests, "fixtures": fixtures, "waits": waits}
            Path(self.json_path).write_text(json.dumps(cattrs.unstructure(kept)))

    def _sum(self, kind: str) -> dict[str, Spent]:
        sums: dict[str, Spent] = defaultdict(Spent)
        for profile in self.profiles:
            for name, spent in getattr(profile, kind).items():
                sums[name].add(spent)
        return dict(sums)


def _table(line, title: str, rows: dict[str, Spent], most: int) -> None:
    line(f"\n{'wall s':>9} {'CPU s':>9} {'idle s':>9} {'count':>7}  {title}")
    for name, spent in sorted(rows.items(), key=lambda row: -row[1].wall_s)[:most]:
        times = f"{spent.wall_s:9.1f} {spent.cpu_s:9.1f} {spent.idle_s:9.1f}"
        line(f"{times} {spent.count:7}  {name}")


def _cpu_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the measurements as JSON."""
    parser.addoption("--profile-json", help="write all measurements to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Measure this process; the main one prints."""
    recorder = Recorder(config)
    config.pluginmanager.register(recorder, "profile-recorder")
    if not hasattr(config, "workerinput"):
        printer = Printer(recorder, config.getoption("--profile-json"))
        config.pluginmanager.register(printer, "profile-printer")
