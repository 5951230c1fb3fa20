"""What may come of risky work besides a result, on either side of the process border."""

import enum


class End(enum.StrEnum):
    """How a child ended."""

    DONE = "done"
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"
    CRASHED = "crashed"  # a library in C or Rust, often for want of memory; or an exception
    LOST = "lost"  # killed by somebody else, such as the kernel for want of memory


class SandboxRefusal(ValueError):
    """The function will not work on this input; the message is a sentence for its owner.

    Raised by the function in the child, and again by `Sandbox.call`.
    """


class SandboxEnded(RuntimeError):
    """The child met a limit or crashed; the same input would end the next one, too.

    `end` is "out of time", "out of memory" or "crashed"; the message tells a programmer more.
    """

    def __init__(self, end: End, detail: str = "") -> None:
        super().__init__(detail or f"The sandboxed process ended: {end}.")
        self.end = end


class SandboxLost(RuntimeError):
    """There is no answer, and the input is not to blame: worth another try."""
