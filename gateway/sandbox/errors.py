"""How a sandboxed call may end without a result; used on both sides of the process border."""

import enum


class End(enum.StrEnum):
    """How a child ended."""

    DONE = "done"
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"
    # A library in C or Rust crashed, often because it got no memory; or an exception escaped.
    CRASHED = "crashed"
    # Another process killed the child, such as the kernel when memory was short.
    LOST = "lost"


class SandboxRefusal(ValueError):
    """The function refuses this input; the message is a sentence for the owner of the input.

    The function raises it in the child, and `Sandbox.call` raises it again in the gateway.
    """


class SandboxEnded(RuntimeError):
    """The child met a limit or crashed; the same input would end the next child, too.

    `end` is "out of time", "out of memory" or "crashed"; the message tells a programmer more.
    """

    def __init__(self, end: End, detail: str = "") -> None:
        super().__init__(detail or f"The sandboxed process ended: {end}.")
        self.end = end


class SandboxLost(RuntimeError):
    """There is no answer, and the input is not to blame: the call is worth another try."""
