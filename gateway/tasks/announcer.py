"""Tells who waits for tasks what has happened to them: here at once, and on other nodes."""

from collections.abc import Callable

import attrs

from gateway.contracts.wakes import Heard, Wakes
from gateway.tasks.notifications import TaskNotifications


@attrs.frozen(kw_only=True)
class Announcer:
    """Wakes workers, waiting requests and readers of events, here and on nodes that listen."""

    # None where no other node has the same database.
    wakes: Wakes | None
    notifications: TaskNotifications
    wake_workers: Callable[[], None]
    wake_events: Callable[[], None]

    def start(self) -> None:
        """Hear the other nodes from now on."""
        if self.wakes is not None:
            self.wakes.start(
                Heard(
                    on_queued=self.wake_workers, on_ended=self._tell_of_end, on_gap=self._tell_all
                )
            )

    def queued(self) -> None:
        """Tell that a task may be worked on; call this after it is written down."""
        self.wake_workers()
        if self.wakes is not None:
            self.wakes.post_queued()

    def ended(self, task_id: str) -> None:
        """Tell that a task has ended, or will not begin; call this after it is written down."""
        self._tell_of_end(task_id)
        if self.wakes is not None:
            self.wakes.post_ended(task_id)

    def _tell_of_end(self, task_id: str) -> None:
        self.notifications.post(task_id)
        self.wake_events()

    def _tell_all(self) -> None:
        self.wake_workers()
        self.notifications.post_all()
        self.wake_events()
