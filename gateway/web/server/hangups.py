"""SIGHUP: a reload, or the end of the terminal, also while the gateway is just starting."""

import contextlib
import os
import signal
from collections.abc import Iterator

import attrs


@attrs.define(eq=False, repr=False)
class Hangups:
    """What SIGHUP means for this process, and whether it came before the gateway could act."""

    # Under `nohup`, which ignores the signal, the gateway does not end with its terminal.
    _is_of_terminal: bool
    is_held: bool = False

    @property
    def end_the_gateway(self) -> bool:
        """Whether the terminal of the process has been closed."""
        return self._is_of_terminal and not _has_terminal()


@contextlib.contextmanager
def held_hangups() -> Iterator[Hangups]:
    """Note SIGHUP within the block until a loop handles it: by default it ends the process.

    Call this in the main thread.
    """
    before = signal.getsignal(signal.SIGHUP)
    hangups = Hangups(before is not signal.SIG_IGN and _has_terminal())

    def hold(number: int, frame: object) -> None:  # noqa: ARG001 - a signal handler
        hangups.is_held = True

    signal.signal(signal.SIGHUP, hold)
    try:
        yield hangups
    finally:
        signal.signal(signal.SIGHUP, before or signal.SIG_DFL)


def _has_terminal() -> bool:
    """Whether this process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
