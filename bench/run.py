"""Measures the gateway and prints tables; asserts nothing. `run.py http queue` measures those."""

import argparse
import importlib
import os
import platform
import time
from datetime import UTC, datetime

import place
from rich.console import Console

PARTS = {
    "start": "start and memory",
    "http": "requests a second and latency",
    "direct": "direct payments a second",
    "queue": "tasks a second",
    "million": "a thousand tasks and a million",
    "verify": "x402 verification",
    "pictures": "pictures checked, pages counted",
    "memory": "memory over 100,000 payments",
}


def main() -> None:
    about = "; ".join(f"{name}: {what}" for name, what in PARTS.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog=about)
    parser.add_argument("parts", nargs="*", metavar="part", help="all where none is named")
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := [name for name in chosen if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    console = Console(width=max(100, Console().width))
    console.print(
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, "
        f"{len(place.CORES)} cores, load {os.getloadavg()[0]:.1f}"
    )
    for name in chosen:
        began = time.monotonic()
        with console.status(f"{name}: {PARTS[name]}"):
            tables = importlib.import_module(f"part_{name}").run()
        for table in tables:
            table.title_justify = table.caption_justify = "left"
            console.print("", table)
        console.print(f"[dim]{name}: {time.monotonic() - began:.0f} s[/dim]")


if __name__ == "__main__":
    main()
