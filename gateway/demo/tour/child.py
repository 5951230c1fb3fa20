"""Runs the chain or the gateway in a process of its own, which ends when the demo does.

The demo holds the other end of standard input and writes nothing. Its end, be it by SIGKILL,
closes the pipe on every system; nothing else tells a child so.
"""

import os
import runpy
import signal
import sys
import threading
import time

_MODULES = {"chain": "gateway.demo.chain", "gateway": "gateway"}
_GRACE_S = 10  # for an orderly end after the demo's own


def main() -> None:
    """Run what the first argument names with the other arguments, as `python -m` would."""
    threading.Thread(target=_follow_parent, name="parent", daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(_MODULES[sys.argv[0]], run_name="__main__", alter_sys=True)


def _follow_parent() -> None:
    """Wait for the demo's end, then end as if it had asked."""
    while os.read(0, 1):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    main()
