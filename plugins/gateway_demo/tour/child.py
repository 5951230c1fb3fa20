"""Runs the chain or the gateway in a child process, which ends when the demo ends.

The demo holds the other end of the child's standard input and writes nothing to it. When the demo
ends, by SIGKILL too, every system closes that pipe; no other sign works on every system.
"""

import os
import runpy
import signal
import sys
import threading
import time

_MODULES = {"chain": "gateway_demo.chain", "gateway": "gateway"}
# The child has this long to end in order after the demo has ended.
_GRACE_S = 10


def main() -> None:
    """Run the module that the first argument names, with the others, as `python -m` would."""
    threading.Thread(target=_follow_parent, name="parent", daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(_MODULES[sys.argv[0]], run_name="__main__", alter_sys=True)


def _follow_parent() -> None:
    """Wait for the demo's end, then end this process as SIGTERM from the demo would."""
    while os.read(0, 1):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    main()
