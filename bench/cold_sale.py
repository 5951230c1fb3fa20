"""A cold buyer's whole way: a machine starts, 402, signature, 200.

Drops the kernel's file caches before each run if this user may. `--root` names a Debian, and
`--python` the Python of a checkout in it in which `make install` has run; it runs this tree.
"""

import argparse
import contextlib
import http.client
import json
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import attrs
from place import environment, sized
from processes import cpu_s, free_port, process, stub_chain
from rich.table import Table
from tables import print_head, print_tables
from tree import HERE, Tree, tree_at
from x402_payments import signed_request

_BODY = b'{"prompt":"A lighthouse at dusk"}'
_CACHES = Path("/proc/sys/vm/drop_caches")
_PATIENCE_S = 120.0


@attrs.frozen
class Way:
    """Seconds since the start of the process, and its CPU seconds at the end."""

    price_s: float
    sold_s: float
    cpu_s: float


@attrs.define
class Machine:
    """A tree, in a Debian of its own if `root` is given, with the Python at this path in it."""

    tree: Tree
    root: Path | None
    python: str | None
    folder: Path

    def install(self) -> None:
        """Copy the tree into the machine, and compile it."""
        for part in ("gateway", "providers", "plugins", "static", "bench/plugin"):
            shutil.copytree(self.tree.root / part, self.folder / part, dirs_exist_ok=True)
        (self.folder / "data").mkdir()

    def run(self, port: int, rpc_url: str) -> tuple[str, list[str], dict[str, str]]:
        """Return program, arguments and environment."""
        inside = Path("/") / self.folder.relative_to(self.root) if self.root else self.folder
        copy = attrs.evolve(self.tree, root=inside)
        bind = f"127.0.0.1:{port}"
        env = environment(copy, data_dir=inside / "data", rpc_urls=rpc_url, bind=bind)
        serve = ["-m", "gateway", "serve"]
        if self.root is None or self.python is None:
            return self.tree.python, serve, env
        return "chroot", [str(self.root), self.python, *serve], env


def _drop_caches() -> bool:
    try:
        _CACHES.write_text("3")
    except OSError:
        return False
    return True


def _ask(port: int, request: bytes | None) -> int:
    """Return the status of an unpaid purchase, or of a prepared one; 0 without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        connection.connect()
        if request is None:
            connection.request(
                "POST", "/api/x402/instant", _BODY, {"Content-Type": "application/json"}
            )
            return connection.getresponse().status
        connection.sock.sendall(request)
        answer = http.client.HTTPResponse(connection.sock, method="POST")
        answer.begin()
        body = answer.read()
        if answer.status == http.client.OK and "taskId" not in json.loads(body):
            raise RuntimeError(f"no task: {body[:200]!r}")
    except OSError:
        return 0
    else:
        return answer.status
    finally:
        connection.close()


def _wait_for(status: int, port: int, request: bytes | None, began: float) -> float:
    found = 0
    while time.perf_counter() - began < _PATIENCE_S:
        if (found := _ask(port, request)) == status:
            return time.perf_counter() - began
        time.sleep(0.01)
    raise RuntimeError(f"the last status was {found}, not {status}")


def _go(machine: Machine, rpc_url: str, *, cold: bool) -> Way:
    port = free_port()
    if cold:
        _drop_caches()
    program, arguments, env = machine.run(port, rpc_url)
    began = time.perf_counter()
    log = machine.folder / "log"
    with process(arguments, env, core=None, log=log, program=program) as running:
        price_s = _wait_for(http.client.PAYMENT_REQUIRED, port, None, began)
        sold_s = _wait_for(http.client.OK, port, signed_request(1), began)
        return Way(price_s, sold_s, cpu_s(running.pid))


def _measure(
    trees: Sequence[Tree],
    root: Path | None,
    python: str | None,
    *,
    runs: int,
    colds: Sequence[bool],
) -> dict[tuple[str, bool], list[Way]]:
    """Return the sales by tree, and whether the caches were cold, by turns."""
    found = defaultdict(list)
    place = (root or Path("/")) / "var/tmp"
    with contextlib.ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-cold-", dir=place))
        rpc_url = stack.enter_context(stub_chain())
        machines = [Machine(one, root, python, Path(name) / str(n)) for n, one in enumerate(trees)]
        for machine in machines:
            machine.install()
            _go(machine, rpc_url, cold=False)  # compiles, and makes the database
        # With files in memory first: dropping the caches would also slow down the next such run.
        for cold in colds:
            for _ in range(runs):
                for machine in machines:
                    found[machine.tree.name, cold].append(_go(machine, rpc_url, cold=cold))
    return found


def _row(table: Table, name: str, ways: Sequence[Way]) -> None:
    median = statistics.median
    table.add_row(
        name,
        f"{median(way.price_s for way in ways):.2f} s",
        f"{median(way.sold_s for way in ways):.2f} s",
        f"{median(way.cpu_s for way in ways):.2f} s",
    )


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, help="another checkout, measured by turns")
    parser.add_argument("--root", type=Path, help="a Debian, as by debootstrap")
    parser.add_argument("--python", metavar="PATH", help="in that Debian, of an installed checkout")
    parser.add_argument("--runs", type=int, default=sized(5, 1))
    parser.add_argument("--smoke", action="store_true", help="one run")
    chosen = parser.parse_args()
    if (chosen.root is None) != (chosen.python is None):
        parser.error("--root and --python go together")
    may_drop = not chosen.smoke and _drop_caches()
    trees = [HERE, *([tree_at(chosen.old)] if chosen.old else [])]
    colds = [False, True][: 1 + may_drop]
    found = _measure(trees, chosen.root, chosen.python, runs=chosen.runs, colds=colds)
    table = Table(
        "", "402", "200 of the sale", "CPU", title=f"From the start, median of {chosen.runs}"
    )
    for (tree, is_cold), ways in found.items():
        _row(table, f"{tree}, {'cold file caches' if is_cold else 'files in memory'}", ways)
    print_tables(print_head(), [table])
    if not may_drop and not chosen.smoke:
        print("The file caches could not be dropped: only root may.")


if __name__ == "__main__":
    main()
