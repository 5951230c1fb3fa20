"""A pytest plugin that caches the parts of a start that each gateway would compute again."""

import functools
import gc
import inspect
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jinja2
import pytest

from gateway.sandbox import Sandbox
from gateway.sandbox.process import WarmedProcess


def pytest_collection_finish(session: pytest.Session) -> None:
    """Take modules and tests out of the collector, which would look at them again and again.

    Only in the processes of pytest-xdist: Hypothesis needs to see what refers to an object when it
    is imported, and otherwise that is after the tests.
    """
    if hasattr(session.config, "workerinput"):
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _sources_are_read_once() -> Iterator[None]:
    """Cache the sources of classes: typed_settings reads them for docstrings at each load."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect, "getsource", functools.lru_cache(inspect.getsource))
        yield


_start_alone, _close_alone = WarmedProcess.start, Sandbox.close
# Those of plugins are not shared: tests break their processes.
_SHARED = "gateway.sandbox."


@pytest.fixture
def sandboxes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each sandbox of a test start its process, and end it."""
    monkeypatch.setattr(WarmedProcess, "start", _start_alone)
    monkeypatch.setattr(Sandbox, "close", _close_alone)


@pytest.fixture(scope="session", autouse=True)
def _sandboxes_are_warmed_once() -> Iterator[None]:
    """Let all gateways share the processes that decode pictures and documents.

    Loading Pillow takes more than twice the time of a gateway. Each call still has its own child,
    and a broken process ends. `sandboxes_of_their_own` is for tests of those processes.
    """
    kept: dict[Any, WarmedProcess] = {}
    lock = threading.Lock()

    def start(_: type, function: str, warm: tuple[str, ...], limits: Any) -> WarmedProcess:
        if not function.startswith(_SHARED):
            return _start_alone(function, warm, limits)
        key = (function, warm, limits, tuple(sys.path))
        with lock:
            if key not in kept or not kept[key].is_alive:
                kept[key] = _start_alone(function, warm, limits)
            return kept[key]

    def leave(sandbox: Sandbox) -> None:
        if sandbox.function.startswith(_SHARED):
            sandbox._running = None
        else:
            _close_alone(sandbox)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WarmedProcess, "start", classmethod(start))
        patch.setattr(Sandbox, "close", leave)
        yield
    for process in kept.values():
        process.close()


@pytest.fixture(scope="session", autouse=True)
def _templates_are_compiled_once() -> Iterator[None]:
    """Let the gateways of this process share the bytecode of their pages."""
    import quart

    options = {**quart.Quart.jinja_options, "bytecode_cache": _MemoryCache()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quart.Quart, "jinja_options", options)
        yield


@pytest.fixture(scope="session", autouse=True)
def _routes_are_compiled_once() -> Iterator[None]:
    """Let routes of one pattern share the code that builds their URL, a quarter of a start."""
    from werkzeug.routing import Rule

    compile_alone = Rule._compile_builder
    kept: dict[Any, Any] = {}

    def compile_builder(rule: Rule, append_unknown: bool = True) -> Any:
        if rule.defaults:
            return compile_alone(rule, append_unknown)
        key = (rule.rule, tuple(rule._trace), append_unknown)
        if key not in kept:
            kept[key] = compile_alone(rule, append_unknown)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rule, "_compile_builder", compile_builder)
        yield


@pytest.fixture(scope="session", autouse=True)
def _passwords_are_cheap() -> Iterator[None]:
    """Hash a new password in a millisecond; a stored hash is still compared at its own cost."""
    import argon2

    class Cheap(argon2.PasswordHasher):
        def __init__(self) -> None:
            super().__init__(time_cost=1, memory_cost=8, parallelism=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argon2, "PasswordHasher", Cheap)
        yield


class _MemoryCache(jinja2.BytecodeCache):
    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Any) -> None:
        if (code := self._codes.get(bucket.key)) is not None:
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Any) -> None:
        self._codes[bucket.key] = bucket.bytecode_to_string()
