"""How the warmed process comes to keep children: load what they need, then serve the gateway."""

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


def keep(order: Mapping[str, Any]) -> None:
    """Serve the gateway, which holds the other end of standard input."""
    gateway = os.getppid()
    control = socket.socket(fileno=os.dup(0))
    hide_memory()  # from the children, too
    with _ended_with(control):
        for entry in order["warm"]:
            _warm(entry)
        function = _named(order["function"])
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - a device, not a path
        for standard in (0, 1, 2):  # what a library prints may be a customer's text
            os.dup2(nothing.fileno(), standard)
    gc.collect()
    gc.freeze()  # what is loaded now stays shared with the children
    limits = SandboxLimits(**order["limits"])
    serve = functools.partial(work.serve, function)
    ForkServer(control=control, gateway=gateway, serve=serve, limits=limits).run()


@contextmanager
def _ended_with(control: socket.socket) -> Iterator[None]:
    """End this process when the gateway hangs up within the block, which may take seconds."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watching = threading.Thread(target=_leave_on_hang_up, args=(control, theirs), daemon=True)
        watching.start()
        try:
            yield
        finally:
            ours.close()
            watching.join()  # a child forked beside another thread could find a lock held


def _leave_on_hang_up(control: socket.socket, loaded: socket.socket) -> None:
    poller = select.poll()
    poller.register(control, 0)  # hang-ups only; what arrives is read after loading
    poller.register(loaded, 0)
    if any(fd == control.fileno() for fd, _ in poller.poll()):
        os._exit(0)


def _warm(entry: str) -> None:
    if ":" in entry:
        _named(entry)()
    else:
        importlib.import_module(entry)


def _named(entry: str) -> work.Function:
    module, _, name = entry.partition(":")
    function: work.Function = getattr(importlib.import_module(module), name)
    return function
