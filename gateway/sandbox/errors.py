"""Failures of a sandboxed call, used on both sides of the process boundary."""

import enum


class End(enum.StrEnum):
    """How a child ended."""

    DONE = "done"
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"
    # A C or Rust library crashed, often because an allocation failed, or an exception escaped.
    CRASHED = "crashed"
    # The machine's fault: the kernel killed the child when memory ran out, or it got too little of
    # the processor.
    LOST = "lost"
    # The machine had no process or memory left for a child.
    NOT_STARTED = "not started"
    # The warmed process could not import the function.
    NOT_LOADED = "not loaded"


class SandboxRefusal(ValueError):
    """The function rejects this input. The message is for the owner of the input.

    Raised in the child; `Sandbox.call` raises it again in the gateway.
    """


class SandboxEnded(RuntimeError):
    """The child hit a limit or crashed. The same input would fail again.

    `end` is "out of time", "out of memory" or "crashed"; the message has details for developers.
    """

    def __init__(self, end: End, detail: str = "") -> None:
        super().__init__(detail or f"The sandboxed process ended: {end}.")
        self.end = end


class SandboxLost(RuntimeError):
    """There is no result, and this machine is to blame, not the input: try the call again.

    `has_begun` is False if no child could be started.
    """

    def __init__(self, message: str = "", *, has_begun: bool = True) -> None:
        super().__init__(message)
        self.has_begun = has_begun


class SandboxBroken(SandboxLost):
    """The function cannot be loaded, so no call can work. `problem` has the reason."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"The sandboxed process could not be started: {problem}", has_begun=False)
        self.problem = problem
