"""A rule of the production code, temporarily broken."""

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs

ONE_USE = "DROP INDEX payments_one_use"  # of direct payments: a guard of its own


@attrs.frozen
class Mutant:
    breaks: str
    patches: tuple[tuple[Any, str, Any], ...]
    relaxed: tuple[str, ...] = ()
    cap: int = 3000  # histories within which it must be caught


@contextlib.contextmanager
def patched(*patches: tuple[Any, str, Any]) -> Iterator[None]:
    before = [(place, name, getattr(place, name)) for place, name, _ in patches]
    try:
        for place, name, value in patches:
            setattr(place, name, value)
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)
