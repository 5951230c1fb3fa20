"""Attacks on a real gateway: `bench/attacks --python ../older/.venv/bin/python --only unpaid`.

Each area prints a row per attack: its number, the attempt, the measurement.
"""

import argparse
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.table import Table
from tables import print_head, print_tables
from tree import HERE, tree_at

AREAS = ("reading", "unpaid", "operators")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=AREAS, action="append", help="default: all areas")
    parser.add_argument("--python", default=sys.executable, help="of a checkout's .venv")
    wanted = parser.parse_args()
    # Not resolved: a venv's Python is a symlink.
    python = Path(wanted.python).absolute()
    root = python.parents[2]
    tree = HERE if root == HERE.root else tree_at(root)
    console = print_head()
    table = Table("point", "attempt", "measured", title=f"Attacks on {root}")
    for area in wanted.only or AREAS:
        for row in importlib.import_module(area).rows(tree):
            table.add_row(*row)
    print_tables(console, [table])


if __name__ == "__main__":
    main()
