"""The nursery process: what it knows, how it dies, and what is left when others do."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import documents_files as files
import documents_hostile as hostile
import pytest
from documents_files import request

import gateway
from gateway_documents.child.keeper import IDLE_S, Keeper
from gateway_documents.provider import DocumentParser

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

PAGE = request("a.html", b"<h1>Hello</h1>")
SLOW = hostile.heavy_docx()


@pytest.fixture
def parser():
    parser = DocumentParser()
    yield parser
    parser.close()


def nursery_of(parser):
    return parser._nursery._running.process.pid


def children_of(pid):
    return [int(child) for child in of_process(pid, f"task/{pid}/children").split()]


def limits_of(pid):
    """Return the soft and hard limits of a process, by name."""
    lines = of_process(pid, "limits").splitlines()[1:]
    return {line[:26].strip(): line[26:].split()[:2] for line in lines}


async def eventually(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.02)
    return found


async def start_slow_document(parser):
    """Return the task that parses it, and the child at work."""
    task = asyncio.create_task(parser.submit(request("slow.docx", SLOW), None))
    await parser.warm_up()
    [child] = await eventually(lambda: children_of(nursery_of(parser)))
    return task, child


def of_process(pid, name):
    return Path(f"/proc/{pid}/{name}").read_text()


def is_alive(pid):
    try:
        return of_process(pid, "stat").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_the_nursery_sees_none_of_the_gateways_secrets(parser, monkeypatch):
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0xsecret")
    await parser.submit(PAGE, None)
    environment = of_process(nursery_of(parser), "environ")
    assert "GATEWAY" not in environment
    assert "OPENBLAS_NUM_THREADS=1" in environment


async def test_a_child_can_open_nothing_and_is_limited(parser):
    task, child = await start_slow_document(parser)
    await eventually(lambda: limits_of(child)["Max open files"] == ["4", "4"])
    found = limits_of(child)
    assert found["Max cpu time"] == ["10", "12"]
    assert found["Max file size"] == found["Max core file size"] == ["0", "0"]
    assert int(found["Max address space"][0]) <= 1_500_000_000
    assert of_process(child, "oom_score_adj").strip() == "1000"
    task.cancel()


async def test_the_nursery_stays_small(parser):
    for name, data in files.ordinary_files().items():
        await parser.submit(request(name, data), None)
    status = of_process(nursery_of(parser), "status")
    [size] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")]
    assert size < 80_000  # kB; 59,000 when this was written


async def test_cancelling_kills_the_child(parser):
    task, child = await start_slow_document(parser)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    await eventually(lambda: not is_alive(child), seconds=3)
    assert (await parser.submit(PAGE, None)).text == "# Hello"


async def test_a_child_killed_from_outside_is_worth_another_try(parser):
    task, child = await start_slow_document(parser)
    os.kill(child, signal.SIGKILL)
    with pytest.raises(gateway.Transient, match="killed from outside"):
        await task


async def test_a_nursery_that_left_is_started_again(parser):
    await parser.submit(PAGE, None)
    first = nursery_of(parser)
    os.kill(first, signal.SIGKILL)
    assert (await parser.submit(PAGE, None)).text == "# Hello"
    assert nursery_of(parser) != first


async def test_a_document_whose_nursery_is_killed_is_parsed_by_the_next(parser):
    task, child = await start_slow_document(parser)
    first = nursery_of(parser)
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: not is_alive(child), seconds=3)
    await eventually(lambda: parser._nursery._running.process.pid != first)
    await eventually(lambda: children_of(nursery_of(parser)))
    task.cancel()


async def test_a_nursery_that_cannot_start_is_transient(parser, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(gateway.Transient, match="could not be started"):
        await parser.submit(PAGE, None)


async def test_a_python_that_is_gone_is_transient(parser, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(gateway.Transient, match="could not be started"):
        await parser.submit(PAGE, None)


async def test_many_documents_at_once_are_all_parsed(parser):
    results = await asyncio.gather(*(parser.submit(PAGE, None) for _ in range(40)))
    assert {result.text for result in results} == {"# Hello"}
    await eventually(lambda: not children_of(nursery_of(parser)))


async def test_the_loop_is_never_held(parser):
    await parser.warm_up()
    task, _ = await start_slow_document(parser)
    longest = 0.0
    for _ in range(50):
        before = time.monotonic()
        await asyncio.sleep(0.01)
        longest = max(longest, time.monotonic() - before)
    task.cancel()
    assert longest < 0.25


SERVER = """
import asyncio, sys
sys.path[:0] = sys.argv[1:]
import documents_hostile as hostile
from documents_files import request
from gateway_documents.provider import DocumentParser

async def main():
    parser = DocumentParser()
    await parser.warm_up()
    print(parser._nursery._running.process.pid, flush=True)
    await parser.submit(request("slow.docx", hostile.heavy_docx()), None)

asyncio.run(main())
"""


async def test_no_process_outlives_a_killed_gateway():
    tests = Path(__file__).parent
    paths = [str(path) for path in (tests, tests.parent.parent, tests.parent.parent / "providers")]
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, *paths, stdout=subprocess.PIPE
    )
    nursery = int(await server.stdout.readline())
    [child] = await eventually(lambda: children_of(nursery))
    server.kill()
    await server.wait()
    await eventually(lambda: not is_alive(nursery) and not is_alive(child), seconds=3)


def test_an_idle_nursery_leaves():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        keeper = Keeper(theirs, gateway=os.getppid(), serve=print)
        assert keeper._is_wanted()
        keeper._last_busy -= IDLE_S
        assert not keeper._is_wanted()


def test_it_works_on_uvloop():
    uvloop = pytest.importorskip("uvloop")

    async def parse():
        parser = DocumentParser()
        try:
            return (await parser.submit(request("a.pdf", files.sample_pdf()), None)).text
        finally:
            parser.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert "Quarterly Report" in runner.run(parse())


def test_importing_it_loads_no_parser():
    root = Path(__file__).parent.parent.parent
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]; import gateway_documents; print(*sys.modules)"
    )
    command = [sys.executable, "-c", script, str(root), str(root / "providers")]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"markitdown", "pdf_inspector", "openpyxl", "pptx", "lxml", "bs4", "PIL"}
    assert heavy & set(loaded) == set()
