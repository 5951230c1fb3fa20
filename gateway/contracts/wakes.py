"""How the nodes on one database tell each other at once what they would find by looking."""

from collections.abc import Callable
from typing import Protocol

import attrs


@attrs.frozen(kw_only=True)
class Heard:
    """What a node does when it hears of another; each function returns at once."""

    # A task may be worked on.
    on_queued: Callable[[], None]
    # This task has ended, or has changed in another way that its buyer waits for.
    on_ended: Callable[[str], None]
    # Something may have been missed: look at everything once.
    on_gap: Callable[[], None]


class Wakes(Protocol):
    """Tells other nodes what has just been committed. What is lost is found by the next look."""

    @property
    def is_live(self) -> bool:
        """Whether this node hears the others now."""
        ...

    def start(self, heard: Heard) -> None:
        """Hear the others from now on, until the store closes."""
        ...

    def post_queued(self) -> None:
        """Tell the others that a task may be worked on; call this after the commit."""
        ...

    def post_ended(self, task_id: str) -> None:
        """Tell the others that a task has ended; call this after the commit."""
        ...
