"""Measures the gateway and prints tables, without assertions.

`run.py http queue` runs two parts.
"""

import argparse
import importlib
import time

from tables import print_head, print_tables

PARTS = {
    "start": "start and memory",
    "http": "requests a second and latency",
    "direct": "direct payments a second",
    "queue": "tasks a second",
    "million": "a thousand tasks and a million",
    "growth": "requests among many tasks, addresses, endpoints",
    "verify": "x402 verification",
    "pictures": "pictures checked, pages counted",
    "documents": "documents parsed, by format",
    "memory": "memory over 100,000 payments",
}


def main() -> None:
    about = "; ".join(f"{name}: {what}" for name, what in PARTS.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog=about)
    parser.add_argument("parts", nargs="*", metavar="part", help="all by default")
    parser.add_argument("--smoke", action="store_true", help="a few requests each, no figures")
    parser.add_argument("--million", action="store_true", help="growth: to a million tasks")
    parser.add_argument("--old", help="start: another checkout, measured by turns")
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := [name for name in chosen if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    console = print_head()
    for name in chosen:
        began = time.monotonic()
        with console.status(f"{name}: {PARTS[name]}"):
            tables = importlib.import_module(f"part_{name}").run()
        print_tables(console, tables)
        console.print(f"[dim]{name}: {time.monotonic() - began:.0f} s[/dim]")


if __name__ == "__main__":
    main()
