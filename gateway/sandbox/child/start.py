"""Turns the warmed process into the fork server: loads the children's code, then serves."""

import functools
import gc
import importlib
import os
import select
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gateway.sandbox.child import work
from gateway.sandbox.child.fork_server import ForkServer
from gateway.sandbox.child.prctl import hide_memory
from gateway.sandbox.limits import SandboxLimits


def start(order: Mapping[str, Any]) -> None:
    """Serve the gateway, which holds the other end of standard input."""
    gateway_pid = os.getppid()
    control = socket.socket(fileno=os.dup(0))
    # Also hides this memory from the children.
    hide_memory()
    with _exit_on_hang_up(control):
        for entry in order["warm"]:
            _warm(entry)
        function = _load_function(order["function"])
    _close_standard_streams()
    gc.collect()
    # Keep the loaded memory shared with the children.
    gc.freeze()
    limits = SandboxLimits(**order["limits"])
    serve = functools.partial(work.serve, function)
    ForkServer(control=control, gateway_pid=gateway_pid, serve=serve, limits=limits).run()


def _close_standard_streams() -> None:
    """Redirect them to /dev/null: a library's output may contain a buyer's text."""
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - a device, not a path
        for standard in (0, 1, 2):
            os.dup2(nothing.fileno(), standard)


@contextmanager
def _exit_on_hang_up(control: socket.socket) -> Iterator[None]:
    """Exit if the gateway hangs up during the block, which takes seconds."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watcher = threading.Thread(target=_wait_for_hang_up, args=(control, theirs), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ours.close()
            # A child forked beside another thread could inherit a held lock.
            watcher.join()


def _wait_for_hang_up(control: socket.socket, loaded: socket.socket) -> None:
    poller = select.poll()
    # Hang-ups only: data is read after loading.
    poller.register(control, 0)
    poller.register(loaded, 0)
    if any(fd == control.fileno() for fd, _ in poller.poll()):
        os._exit(0)


def _warm(entry: str) -> None:
    if ":" in entry:
        _load_function(entry)()
    else:
        importlib.import_module(entry)


def _load_function(entry: str) -> work.Function:
    module, _, name = entry.partition(":")
    function: work.Function = getattr(importlib.import_module(module), name)
    return function
