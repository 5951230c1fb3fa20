"""Runs the chain or the gateway in a process of its own, which ends when the demo does.

The demo holds the other end of standard input and writes nothing. Its end, be it by SIGKILL,
closes the pipe on every system; nothing else tells a child so.
"""

import os
import signal
import sys
import threading
import time

_GRACE_S = 10  # for an orderly end after the demo's own


def main() -> None:
    """Run `chain` or `gateway`, whichever the first argument names, with the other arguments."""
    threading.Thread(target=_follow_parent, name="parent", daemon=True).start()
    part, *arguments = sys.argv[1:]
    if part == "chain":
        from gateway.demo.chain import main as command  # noqa: PLC0415 - half a second of imports
    else:
        from gateway.cli import main as command  # noqa: PLC0415 - the chain needs none of it
    command(arguments)


def _follow_parent() -> None:
    """Wait for the demo's end, then end as if it had asked."""
    while os.read(0, 1):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    main()
