"""Keeps heavy libraries that ours only use if they are there out of the server's start.

structlog imports rich for coloured tracebacks, typed-settings imports pydantic for a secret
type; together 12 MB and 60 ms that a server never uses. web3 gets pydantic when it is warmed.
"""

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Let `import name` fail as if it were not installed, within the block."""
    hidden = {name: sys.modules[name] for name in names if name in sys.modules}
    modules: dict[str, object] = sys.modules  # type: ignore[assignment]  # None is what Python documents
    modules.update(dict.fromkeys(names))
    try:
        yield
    finally:
        for name in names:
            del modules[name]
        modules.update(hidden)
