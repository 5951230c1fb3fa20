"""Ensures that each part name and path, and the callbacks, belong to one plugin."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from gateway.contracts.parts import Part
from gateway.settings import parse_limit

Owner = TypeVar("Owner")

_RESERVED_FOLDERS = ("/api/", "/files/", "/.well-known/")
_RESERVED = ("/llms.txt", "/robots.txt", "/sitemap.xml", "/favicon.ico")


def find_mistake(part: Part) -> str | None:
    """Return the mistake in the paths of a part, or None.

    Raises `SettingsError` for an invalid rate limit.
    """
    for path in _paths_of(part):
        if not path.startswith("/"):
            return f"the path {path!r} does not begin with /"
        if f"{path}/".startswith(_RESERVED_FOLDERS) or path in _RESERVED or path == "/*":
            return f"the path {path!r} is the gateway's own"
    for mount in part.mounts:
        if mount.limit:
            # Raises if the limit is invalid.
            parse_limit(mount.limit)
    return None


class PartOwners(Generic[Owner]):
    """The names and paths that plugins have taken."""

    def __init__(self, core: Iterable[str]) -> None:
        self._core = frozenset(core)
        self._owners: dict[str, Owner] = {}

    def take(self, owner: Owner, parts: Iterable[Part]) -> tuple[str, Owner] | None:
        """Reserve the names and paths of parts; return a taken one and its owner, or None.

        Raises `ValueError` for a name of the core's parts.
        """
        wanted = [thing for part in parts for thing in self._things_of(part)]
        for thing in wanted:
            if thing in self._owners:
                return thing, self._owners[thing]
        self._owners |= dict.fromkeys(wanted, owner)
        return None

    def _things_of(self, part: Part) -> Iterator[str]:
        if part.name in self._core:
            raise ValueError(f"the name {part.name!r} is that of a part of the gateway")
        yield f"Part {part.name}"
        yield from (f"Path {path}" for path in _paths_of(part))
        if part.callbacks is not None:
            yield "The sending of events to buyers"


def _paths_of(part: Part) -> Iterator[str]:
    return (path for mount in part.mounts for path in mount.paths)
