"""The first step of each installation: stops with a message if this Python is unsuitable.

Old Pythons run this file too, so it must work with Python 3.6.
"""

import re
import sys
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def complaint(goal: str) -> str:
    """Return why this Python is unsuitable; empty if it is suitable. `goal` is make's."""
    text = PYPROJECT.read_text(encoding="utf-8")
    bounds = re.search(r'^requires-python = ">=3\.(\d+),<3\.(\d+)"', text, re.MULTILINE)
    oldest, newest = int(bounds.group(1)), int(bounds.group(2)) - 1
    version = sys.version_info[:2]
    number = ".".join(str(part) for part in sys.version_info[:3])
    if not (3, oldest) <= version <= (3, newest):
        return (
            f"Python {number} is too {'old' if version < (3, oldest) else 'new'}: "
            f"the gateway needs Python 3.{oldest} to 3.{newest}. "
            f"Name one that you have, for example: make {goal} PYTHON=python3.{oldest}"
        )
    try:
        import ensurepip  # noqa: F401, PLC0415 - Debian keeps it in a package of its own
        import venv  # noqa: F401, PLC0415
    except ImportError:
        return (
            "This Python has no venv module. "
            "On Debian or Ubuntu: apt-get install python3-venv; then run make again."
        )
    return ""


if __name__ == "__main__":
    sys.exit(complaint(" ".join(sys.argv[1:]) or "install") or 0)
