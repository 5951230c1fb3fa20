"""References to tasks: the start of an id, which gives no access, unlike the full id.

It has 60 random bits, so it is unique; the other 62 bits of the id stay secret.
"""

import re

from gateway_operator.desk.desk import Desk
from gateway_operator.sql import task_lists

_ID = re.compile(r"\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4})-[0-9a-f]{4}-[0-9a-f]{12}\b")
_REFERENCE = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}\b(?!-)")


def shorten_ids(text: str, known: str = "") -> str:
    """Replace each task id that is not in `known` by its reference."""
    return _ID.sub(lambda found: found[0] if found[0] in known else found[1], text)


async def lengthen_ids(desk: Desk, text: str) -> str:
    """Replace each reference by the task's id."""
    ids = {named: await find_id(desk, named) for named in set(_REFERENCE.findall(text))}
    return _REFERENCE.sub(lambda found: ids[found[0]], text)


async def find_id(desk: Desk, named: str) -> str:
    """Return the task id of a reference; any other text unchanged."""
    if not _REFERENCE.fullmatch(named):
        return named
    found: str | None = await desk.store.sum(task_lists.find_referred, named)
    return found or named
