"""How the warmed process comes to keep children: load what they need, then serve the gateway."""

import functools
import gc
import importlib
import os
import socket
from collections.abc import Mapping
from typing import Any

from gateway.sandbox.child import work
from gateway.sandbox.child.keeper import Keeper
from gateway.sandbox.limits import SandboxLimits


def keep(order: Mapping[str, Any]) -> None:
    """Serve the gateway, which holds the other end of standard input."""
    gateway = os.getppid()
    control = socket.socket(fileno=os.dup(0))
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
    Keeper(control=control, gateway=gateway, serve=serve, limits=limits).run()


def _warm(entry: str) -> None:
    if ":" in entry:
        _named(entry)()
    else:
        importlib.import_module(entry)


def _named(entry: str) -> work.Function:
    module, _, name = entry.partition(":")
    function: work.Function = getattr(importlib.import_module(module), name)
    return function
