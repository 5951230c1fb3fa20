"""Deterministic simulation of the production money code: one seed replays one history."""

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[3]
for _folder in (_ROOT / "providers", _ROOT / "plugins", _ROOT):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))  # the sources need no install
