"""Names of tasks that open nothing: whoever has the id of a task may read its result.

A reference is the id's beginning. It has 60 random bits, so no two tasks share one, and 62 bits are
missing to the id.
"""

import re

from gateway_operator.desk.desk import Desk
from gateway_operator.sql import task_lists

_ID = re.compile(r"\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4})-[0-9a-f]{4}-[0-9a-f]{12}\b")
_REFERENCE = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}\b(?!-)")


def shorten_ids(text: str, known: str = "") -> str:
    """Return a text with a reference in place of each task's id that is not in `known`."""
    return _ID.sub(lambda found: found[0] if found[0] in known else found[1], text)


async def lengthen_ids(desk: Desk, text: str) -> str:
    """Return a text with an id in place of each reference."""
    ids = {named: await find_id(desk, named) for named in set(_REFERENCE.findall(text))}
    return _REFERENCE.sub(lambda found: ids[found[0]], text)


async def find_id(desk: Desk, named: str) -> str:
    """Return the id of the task that a reference names; anything else as it is."""
    if not _REFERENCE.fullmatch(named):
        return named
    found: str | None = await desk.store.sum(task_lists.find_referred, named)
    return found or named
