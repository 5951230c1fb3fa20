"""Runs the chain, the gateway or a script in a child process, which exits when its parent does.

The demo holds the write end of the child's standard input and never writes to it. When the demo
exits, even by SIGKILL, the system closes that pipe. No other signal works on every system.
"""

import os
import runpy
import signal
import sys
import threading
import time

_MODULES = {
    "chain": "gateway_demo.chain",
    "gateway": "gateway",
    "stage": "gateway_demo.rehearsal.serving",
}
# The child's time for a clean shutdown.
_GRACE_S = 10


def main() -> None:
    """Run the module or script in the first argument, with the others, as Python would."""
    threading.Thread(target=_follow_parent, name="parent", daemon=True).start()
    sys.argv = sys.argv[1:]
    if sys.argv[0] in _MODULES:
        runpy.run_module(_MODULES[sys.argv[0]], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


def _follow_parent() -> None:
    """Wait until the demo has exited, then end this process like a SIGTERM."""
    while os.read(0, 1):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    main()
