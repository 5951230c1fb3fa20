"""Two `gateway serve` on one machine: with one PostgreSQL they share the work, else one refuses."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from werkzeug import Response

from tests.conftest import Payer
from tests.proof.process.gateway_process import PATIENCE_S, Gateway, until

# A provider of texts that notes its process, and waits for the file `go`.
TEXTS = """
import asyncio, os, pathlib
from gateway import Endpoint, Result, Traits, hookimpl, usdc

FOLDER = pathlib.Path(os.environ["SLOW_FOLDER"])

class Texts:
    name = "slow"
    traits = Traits(idempotent_submit=True)

    async def submit(self, request, job):
        with (FOLDER / "calls").open("a") as calls:
            calls.write(f"{job.task_id} {os.getpid()}\\n")
        while not (FOLDER / "go").exists():
            await asyncio.sleep(0.02)
        return Result(text=f"by {os.getpid()}")

@hookimpl
def register_endpoints(register, settings):
    register(
        Endpoint(slug="slow", title="Slow", description="Slow.", model="slow-1", provider="slow",
                 capability="document-parsing", price_units=usdc("0.02")),
        Texts(),
    )
"""
# A minute is too long for a test: a killed process must lose its leases.
HURRIED = """
from gateway.tasks.timing import TaskTiming
TaskTiming.__init__.__kwdefaults__.update(lease_s=5.0, extend_s=1.0, idle_s=0.5)
"""


@pytest.fixture
def bucket(httpserver) -> str:
    """A bucket that keeps its objects; returns its URL."""
    kept: dict[str, bytes] = {}

    def answer(request) -> Response:
        if request.method == "PUT":
            kept[request.path] = request.get_data()
            return Response(headers={"ETag": '"0"'})
        found = kept.get(request.path)
        return Response(status=404) if found is None else Response(found)

    httpserver.expect_request(re.compile("/outputs/.*")).respond_with_handler(answer)
    return httpserver.url_for("").rstrip("/")


@pytest.fixture
def processes(
    tmp_path, chain, key, migrated_url, bucket
) -> Iterator[Callable[..., tuple[Gateway, Gateway]]]:
    """Return a function that starts two nodes, each with a folder, a port and a name."""
    made: list[Gateway] = []

    def start(*, is_forked: bool) -> tuple[Gateway, Gateway]:
        for name in ("a", "b"):
            folder = tmp_path / name
            folder.mkdir()
            shared = {
                "SLOW_FOLDER": str(tmp_path),
                "GATEWAY_BASE_URL": "http://gateway.test",
                "GATEWAY_DATABASE_URL": migrated_url,
                "GATEWAY_DATABASE_CONNECTIONS": "4",
                "GATEWAY_OUTPUTS_URL": "s3://outputs",
                "GATEWAY_OUTPUTS_ENDPOINT": bucket,
                "GATEWAY_OUTPUTS_ACCESS_KEY_ID": "key",
                "GATEWAY_OUTPUTS_SECRET_ACCESS_KEY": "hidden",
                # Half of a small machine for each.
                "GATEWAY_SANDBOX_MEMORY_MB": "400",
            }
            one = Gateway(folder, chain, key, **shared, GATEWAY_NODE=name)
            (one.site / "slow_provider.py").write_text(TEXTS)
            one.patch(HURRIED, before_imports=not is_forked)
            made.append(one)
            one.start()
        return made[0], made[1]

    yield start
    for one in made:
        if one.process is not None:
            one.kill()


def read_calls(folder: Path) -> dict[str, list[int]]:
    """Return the processes that submitted each task, in order."""
    found: dict[str, list[int]] = {}
    if (folder / "calls").exists():
        for line in (folder / "calls").read_text().splitlines():
            task_id, pid = line.split()
            found.setdefault(task_id, []).append(int(pid))
    return found


def sell_and_kill(
    nodes: tuple[Gateway, Gateway], payers: list[Payer], folder: Path
) -> dict[str, list[int]]:
    """Sell at both, kill one at work, and let the other finish; returns the calls by task."""
    tasks = [node.bought(payer.header()) for payer in payers for node in nodes]
    until(lambda: len({pid for pids in read_calls(folder).values() for pid in pids}) == 2)
    dead, alive = nodes
    dead.kill()
    (folder / "go").touch()
    until(lambda: all(alive.task(task)["status"] == "completed" for task in tasks))
    texts = {alive.task(task)["result"]["text"] for task in tasks}
    assert texts <= {f"by {alive.process.pid}", f"by {dead.process.pid}"}
    assert set(read_calls(folder)) == set(tasks)
    return read_calls(folder)


def test_two_processes_sell_and_one_finishes_the_tasks_of_the_other(
    processes, chain, payer, tmp_path
):
    nodes = processes(is_forked=True)
    before = payer_units(chain, payer)
    calls = sell_and_kill(nodes, [payer], tmp_path)
    assert before - payer_units(chain, payer) == 2 * 20_000
    # One task began at each, and both ended at the one that lives.
    dead, alive = (node.process.pid for node in nodes)
    assert {pids[0] for pids in calls.values()} == {dead, alive}
    assert {pids[-1] for pids in calls.values()} == {alive}


@pytest.mark.full  # processes that are not forked, and more sales
def test_two_real_processes_lose_no_sale(processes, chain, tmp_path):
    payers = [Payer(chain) for _ in range(6)]
    calls = sell_and_kill(processes(is_forked=False), payers, tmp_path)
    assert len(calls) == 12
    assert {payer_units(chain, payer) for payer in payers} == {100_000_000 - 2 * 20_000}


def payer_units(chain, payer) -> int:
    return chain.usdc_balance(payer.account.address)


# -- on SQLite


def serve_again(first: Gateway, **changes: str) -> tuple[int, str]:
    """Run a second `gateway serve` with the first one's settings; returns exit code and output."""
    done = subprocess.run(
        first.command,
        cwd=first.folder,
        env=first.environment | changes,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def alone(tmp_path, chain, key) -> Iterator[Gateway]:
    """A running gateway on an SQLite file."""
    gateway = Gateway(tmp_path, chain, key)
    gateway.start()
    yield gateway
    gateway.kill()


def test_a_second_process_on_an_sqlite_file_is_refused_and_the_first_sells_on(alone, payer):
    code, output = serve_again(alone, GATEWAY_BIND="127.0.0.1:0")
    assert (code, "Traceback" in output) == (1, False), output
    assert f"Another gateway uses {alone.folder / 'data'}" in output
    assert "share a PostgreSQL, GATEWAY_DATABASE_URL" in output
    for role in ("web", "worker"):
        code, output = serve_again(alone, GATEWAY_BIND="127.0.0.1:0", GATEWAY_ROLE=role)
        assert (code, f"GATEWAY_ROLE is {role}" in output) == (1, True), output
    assert alone.bought(payer.header())
