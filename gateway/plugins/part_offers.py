"""Validates the parts that plugins register; each mistake is one sentence."""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from gateway.contracts.parts import Discovery, EventReader, EventType, Mount, Part
from gateway.settings import parse_limit

PATH_CLAIM = "Path "
_RESERVED_FOLDERS = ("/api/", "/files/", "/.well-known/")
_RESERVED = ("/llms.txt", "/robots.txt", "/sitemap.xml", "/favicon.ico")
# A literal path, without escapes, patterns and dot segments, which no request would match.
_PATH = re.compile(r"/|(?:/(?!\.{1,2}(?:/|$))[^\s/?#%*<>{}\\\"|^`]+)+(?:/|/\*)?")
# Inserted into XML, Markdown and a line of robots.txt.
_LISTED_PATH = re.compile(r"/[!#-%'-;=?-~]*")
_BLUEPRINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# The core's entries in the manifest.
_ENTRIES = ("generate", "generateDirect", "taskStatus", "llmstxt", "endpointList", "openapi")
_FUNCTIONS = (
    *("start", "begin", "warm", "run", "work", "drain", "close"),
    *("checks", "conditions", "pending"),
)
_CALLBACKS = ("check", "secret_of", "undelivered")
_MAX_NAME_CHARS = 100


def part_offer(core: Collection[str], part: Any) -> tuple[str, Part]:
    """Return a part and its name; raises `ValueError` for anything else.

    `core` are the names of the gateway's own parts. Raises `SettingsError` for an invalid limit.
    """
    name = getattr(part, "name", None)
    if not isinstance(part, Part) or not isinstance(name, str) or not name:
        raise ValueError(f"a {type(part).__name__} is no gateway.Part with a name")
    if not name.isprintable() or len(name) > _MAX_NAME_CHARS:
        raise ValueError(f"the name {name!r} is not 1 to {_MAX_NAME_CHARS} printable characters")
    if name in core:
        raise ValueError(f"the name {name!r} is that of a part of the gateway")
    if mistake := next(_mistakes_in(part), None):
        raise ValueError(f"the part {name}: {mistake}")
    for mount in part.mounts:
        if mount.limit:
            parse_limit(mount.limit)
    return name, part


def claims_of_part(name: str, part: Part) -> Iterator[str]:
    """Yield what only one plugin can have of a part."""
    yield f"Part {name}"
    yield from (f"{PATH_CLAIM}{path}" for mount in part.mounts for path in mount.paths)
    if part.callbacks is not None:
        yield "The sending of events to buyers"


def covers(claim: str, other: str) -> bool:
    """Whether the mount of a claimed path gets every request for another one."""
    root = claim.removesuffix("/*")
    if root == claim:
        return claim == other
    return f"{other.removesuffix('/*')}/".startswith(f"{root}/")


def _mistakes_in(part: Part) -> Iterator[str]:
    for name in _FUNCTIONS:
        step = getattr(part, name)
        if step is not None and not callable(step):
            yield f"{name} is a {type(step).__name__}, no function"
    for name in ("warm_s", "drain_s"):
        limit = getattr(part, name)
        if limit is not None and not (_is_number(limit) and limit > 0):
            yield f"{name} {limit!r} is no number of seconds above 0; None: no limit of its own"
    if not _is_number(part.every_s) or part.every_s < 0:
        yield f"every_s {part.every_s!r} is no number of seconds"
    if not isinstance(part.only_leader, bool):
        yield f"only_leader {part.only_leader!r} is no bool"
    mistakes = (_mistakes_in_mounts(part), _mistakes_in_discovery(part.discovery))
    yield from chain(*mistakes, _mistakes_in_events(part.events))
    for name in _CALLBACKS if part.callbacks is not None else ():
        if not callable(getattr(part.callbacks, name, None)):
            yield f"its callbacks have no method {name}"


def _mistakes_in_mounts(part: Part) -> Iterator[str]:
    if not isinstance(part.mounts, list | tuple):
        yield f"mounts is a {type(part.mounts).__name__}, no list"
        return
    earlier: list[str] = []
    for mount in part.mounts:
        if not isinstance(mount, Mount) or not mount.paths:
            yield f"a {type(mount).__name__} is no gateway.Mount with a path"
            continue
        for path in mount.paths:
            yield from _mistakes_in_path(path)
            for other in earlier:
                if covers(other, path):
                    yield f"the path {path!r} gets no request: {other!r} comes first"
            earlier.append(path)
        yield from _mistakes_in_mount(mount)


def _mistakes_in_path(path: Any) -> Iterator[str]:
    if not isinstance(path, str) or not path.startswith("/"):
        yield f"the path {path!r} does not begin with /"
    elif f"{path}/".startswith(_RESERVED_FOLDERS) or path in _RESERVED or path == "/*":
        yield f"the path {path!r} is the gateway's own"
    elif not _PATH.fullmatch(path):
        yield f"the path {path!r} gets no request: write a plain path, or one that ends with /*"


def _mistakes_in_mount(mount: Mount) -> Iterator[str]:
    if not isinstance(mount.blueprint, str) or not _BLUEPRINT.fullmatch(mount.blueprint):
        yield f"the blueprint {mount.blueprint!r} is not written module:function"
    most = mount.body_bytes
    if not callable(most) and (type(most) is not int or most < 0):
        yield f"body_bytes {most!r} is no number of bytes"
    if not isinstance(mount.limit, str):
        yield f"the limit {mount.limit!r} is not written as 60/60s"
    if not isinstance(mount.is_public, bool):
        yield f"is_public {mount.is_public!r} is no bool"


def _mistakes_in_discovery(discovery: Any) -> Iterator[str]:
    if not isinstance(discovery, Discovery):
        yield f"discovery is a {type(discovery).__name__}, no gateway.Discovery"
        return
    for name in ("manifest", "services", "guide"):
        entries = getattr(discovery, name)
        texts = list(chain(*entries.items())) if isinstance(entries, Mapping) else [entries]
        if not all(isinstance(text, str) and text.isprintable() for text in texts):
            yield f"discovery.{name} is no mapping of text to text in one line"
            return
    if taken := [name for name in discovery.manifest if name in _ENTRIES]:
        yield f"discovery.manifest has the gateway's own entry {taken[0]!r}"
    for name in ("pages", "closed_paths"):
        if not isinstance(getattr(discovery, name), list | tuple):
            yield f"discovery.{name} is no list of paths"
            return
    own = [discovery.openapi] if discovery.openapi != "" else []
    listed = (*discovery.manifest.values(), *discovery.services.values(), *discovery.guide)
    for path in (*own, *listed, *discovery.pages, *discovery.closed_paths):
        if not isinstance(path, str) or not _LISTED_PATH.fullmatch(path):
            yield f"discovery: {path!r} is no path of this gateway"


def _mistakes_in_events(events: Any) -> Iterator[str]:
    if events is None:
        return
    if not isinstance(events, EventReader) or not callable(events.take):
        yield f"events is a {type(events).__name__}, no gateway.EventReader with a function"
        return
    if not _is_list(events.types) or not all(isinstance(one, EventType) for one in events.types):
        yield "events.types is no list of gateway.EventType"
    if not isinstance(events.only_with_callback, bool):
        yield f"events.only_with_callback {events.only_with_callback!r} is no bool"
    if events.on_taken is not None and not callable(events.on_taken):
        yield "events.on_taken is no function"


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)
