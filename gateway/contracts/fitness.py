"""Whether this process may go on with its database; a store says so, and the server ends on it."""

from collections.abc import Callable


class Fitness:
    """Becomes false once, for a reason that only a new start mends. Used on the loop's thread."""

    def __init__(self) -> None:
        # One sentence for the operator; empty while all is well.
        self.problem = ""
        self._tell: Callable[[str], None] | None = None

    def lose(self, problem: str) -> None:
        """Note that this process must end; only the first reason counts."""
        if not self.problem:
            self.problem = problem
            if self._tell is not None:
                self._tell(problem)

    def watch(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the reason, at once where there is one already."""
        self._tell = tell
        if self.problem:
            tell(self.problem)
