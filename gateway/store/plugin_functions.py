"""Which functions of the database are a plugin's, and the tables that they may use."""

import asyncio
import functools
import time
from collections.abc import Callable
from typing import Any

import attrs
import structlog

from gateway.concurrency.awaiting import mark_read
from gateway.errors import StoreUnavailable
from gateway.installed import entry_points, plugin_of

# Plugins may reference and read these of the gateway's tables.
READABLE = ("tasks", "payments")
_OWN_DISTRIBUTION = "generation-gateway"
_GATEWAY = "gateway"
_REST_S = 60.0
_log = structlog.get_logger()


@attrs.frozen
class PluginOwner:
    """A plugin with functions of the database.

    `prefixes` are those of its tables, such as `reviews_`; None for a plugin that is not installed,
    but given to `create_app`, whose tables are unknown.
    """

    plugin: str
    prefixes: tuple[str, ...] | None

    def owns(self, name: str) -> bool:
        """Whether a table or an index is the plugin's."""
        return self.prefixes is None or name.lower().startswith(self.prefixes)

    def may_read(self, table: str) -> bool:
        """Whether the plugin may read a table."""
        return table.lower() in READABLE or self.owns(table)


class Rests:
    """Plugins whose functions blocked the database.

    Each rests for a minute, and until its function returns: otherwise each minute would cost
    another thread.
    """

    def __init__(self) -> None:
        # Monotonic times of the end, and the functions, by plugin.
        self._rests: dict[str, list[tuple[float, asyncio.Future[Any]]]] = {}

    def check(self, owner: PluginOwner) -> None:
        """Raise `StoreUnavailable` while a plugin rests."""
        now = time.monotonic()
        rests = self._rests.pop(owner.plugin, [])
        if rests := [one for one in rests if now < one[0] or not one[1].done()]:
            self._rests[owner.plugin] = rests
            raise StoreUnavailable

    def begin(self, owner: PluginOwner, limit_s: float, running: "asyncio.Future[Any]") -> None:
        """Let a plugin rest, whose function did not return in `limit_s` seconds."""
        running.add_done_callback(mark_read)
        rest = time.monotonic() + _REST_S, running
        self._rests.setdefault(owner.plugin, []).append(rest)
        _log.error("plugin.blocks_database", plugin=owner.plugin, limit_s=limit_s)


def find_owner(function: Callable[..., Any]) -> PluginOwner | None:
    """Return the plugin of a function, or None if it is the gateway's or a bundled plugin's."""
    while isinstance(function, functools.partial):
        function = function.func
    module = getattr(function, "__module__", None) or type(function).__module__
    root = str(module).partition(".")[0]
    prefixes = _prefixes_by_plugin(tuple(entry_points("gateway")), tuple(_migrations())).get(root)
    if prefixes is None and (root == _GATEWAY or root.startswith(f"{_GATEWAY}_")):
        return None
    return PluginOwner(root, prefixes)


def _migrations() -> Any:
    return entry_points("gateway.migrations")


@functools.lru_cache(maxsize=8)
def _prefixes_by_plugin(plugins: Any, migrations: Any) -> dict[str, tuple[str, ...]]:
    """Map third parties' packages to the prefixes of their tables."""
    found: dict[str, tuple[str, ...]] = {
        plugin_of(one.value): () for one in plugins if _is_theirs(one)
    }
    for one in migrations:
        if _is_theirs(one):
            name = plugin_of(one.value)
            found[name] = (*found.get(name, ()), f"{one.name}_")
    return found


def _is_theirs(entry: Any) -> bool:
    return entry.dist is None or _name_of(entry.dist) != _OWN_DISTRIBUTION


@functools.lru_cache(maxsize=64)
def _name_of(distribution: Any) -> str:
    """Return the name, which takes half a millisecond: the metadata contain a whole README."""
    return str(distribution.name).lower().replace("_", "-")
