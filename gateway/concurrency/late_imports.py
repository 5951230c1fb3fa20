"""Defers heavy imports until after startup, and preserves the recursion limit.

structlog imports rich for coloured tracebacks, and typed-settings imports pydantic for a secret
type, if these are installed: together 12 MB and 60 ms for features that a server never uses. web3
imports pydantic later, when the server warms up.
"""

import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType

_importing = threading.Lock()


@contextlib.contextmanager
def hidden(*names: str) -> Iterator[None]:
    """Let `import name` fail inside the block, as if the library were not installed."""
    found = {name: sys.modules[name] for name in names if name in sys.modules}
    # Python documents None as the value of a module that must not be imported.
    modules: dict[str, object] = sys.modules  # type: ignore[assignment]
    modules.update(dict.fromkeys(names))
    try:
        yield
    finally:
        for name in names:
            del modules[name]
        modules.update(found)


def import_in_turn(name: str) -> ModuleType:
    """Import one of our modules that the server's start leaves out; call it in a thread.

    Threads that import modules which need each other may meet them half made, so each waits for
    the one before it.
    """
    with _importing:
        return importlib.import_module(name)


def import_ethereum(name: str) -> ModuleType:
    """Import a library of Ethereum's, such as `eth_account`, and keep Python's recursion limit.

    Their dependency py_ecc raises the limit to 100,000. Under that limit 100 KB of `[` in a
    request's body, or in an answer of a vendor, would end the process.
    """
    limit = sys.getrecursionlimit()
    try:
        return importlib.import_module(name)
    finally:
        sys.setrecursionlimit(limit)
