"""The parsing process: its data, its size, and its exit as the caller sees it.

The life and death of a sandbox is tested in tests/proof/sandbox.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import attrs
import documents_files as files
import documents_hostile as hostile
import pytest
from documents_files import request

import gateway
import gateway_documents
from gateway.sandbox import Sandbox
from gateway.sandbox.sandbox import Meter, metered
from gateway_documents.provider import DocumentParser
from tests.proof.sandbox.processes import (
    children_of,
    eventually,
    is_alive,
    of_process,
    only_root_looks_inside,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

PAGE = request("a.html", b"<h1>Hello</h1>")


@pytest.fixture
async def parser():
    parser = DocumentParser(pictures=None)
    yield parser
    await parser.close()


def keeper_of(parser):
    return parser._texts._running.process.pid


def limits_of(pid):
    """Return the soft and hard limits of a process, by name."""
    lines = of_process(pid, "limits").splitlines()[1:]
    return {line[:26].strip(): line[26:].split()[:2] for line in lines}


async def start_slow_document(parser):
    """Return the parsing task, and the child that runs it."""
    task = asyncio.create_task(parser.submit(request("slow.docx", hostile.heavy_docx()), None))
    await parser.warm_up()
    [child] = await eventually(lambda: children_of(keeper_of(parser)))
    return task, child


@only_root_looks_inside
async def test_the_process_sees_none_of_the_gateways_secrets(parser, monkeypatch):
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0xsecret")
    await parser.submit(PAGE, None)
    environment = of_process(keeper_of(parser), "environ")
    assert "GATEWAY" not in environment
    assert "OPENBLAS_NUM_THREADS=1" in environment


async def test_a_child_can_open_nothing_and_is_limited(parser):
    task, child = await start_slow_document(parser)
    await eventually(lambda: limits_of(child)["Max open files"] == ["0", "0"])
    found = limits_of(child)
    assert found["Max cpu time"] == ["15", "17"]
    assert found["Max file size"] == found["Max core file size"] == ["0", "0"]
    assert int(found["Max address space"][0]) <= 1_500_000_000
    assert of_process(child, "oom_score_adj").strip() == "1000"
    task.cancel()


async def test_the_process_stays_small(parser):
    for name, data in files.ordinary_files().items():
        await parser.submit(request(name, data), None)
    status = of_process(keeper_of(parser), "status")
    [size] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")]
    assert size < 80_000  # kB; 59,000 when this was written


@pytest.mark.full
async def test_cancelling_kills_the_child(parser):
    task, child = await start_slow_document(parser)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    await eventually(lambda: not is_alive(child))
    assert (await parser.submit(PAGE, None)).text == "# Hello"


@pytest.mark.full
async def test_a_child_killed_from_outside_is_worth_another_try(parser):
    task, child = await start_slow_document(parser)
    os.kill(child, signal.SIGKILL)
    with pytest.raises(gateway.Transient, match="killed from outside"):
        await task


async def test_a_process_that_cannot_start_is_transient(parser, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(gateway.Transient, match="could not be started"):
        await parser.submit(PAGE, None)


async def test_many_documents_at_once_are_all_parsed(parser):
    results = await asyncio.gather(*(parser.submit(PAGE, None) for _ in range(40)))
    assert {result.text for result in results} == {"# Hello"}
    await eventually(lambda: not children_of(keeper_of(parser)))


def test_it_works_on_uvloop():
    uvloop = pytest.importorskip("uvloop")

    async def parse():
        parser = DocumentParser(pictures=None)
        try:
            return (await parser.submit(request("a.pdf", files.sample_pdf()), None)).text
        finally:
            await parser.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert "Quarterly Report" in runner.run(parse())


async def test_a_paid_document_waits_for_no_unpaid_ones(parser):
    """However many are checked, the paid one has its own slots."""
    parser._texts = Sandbox(function="sandbox_functions:sleep_on_checks")

    async def check():
        with metered(Meter()):
            await parser.validate(request("a.pdf", files.sample_pdf()), None)

    checks = [asyncio.create_task(check()) for _ in range(4)]
    await asyncio.sleep(0)
    paid = await parser.submit(request("a.pdf", files.sample_pdf()), None)
    assert paid.text == "read"
    assert not any(task.done() for task in checks)
    for task in checks:
        task.cancel()


async def test_a_file_whose_process_is_killed_at_each_check_is_not_sold(parser):
    parser._texts = Sandbox(function="sandbox_functions:die_on_checks")
    pdf = request("a.pdf", files.sample_pdf())
    with pytest.raises(gateway.Transient, match="killed from outside"):
        await parser.validate(pdf, gateway_documents.ENDPOINT)
    assert (await parser.submit(pdf, None)).text == "read"


def test_importing_it_loads_no_parser():
    root = Path(__file__).parents[3]
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]; import gateway_documents; print(*sys.modules)"
    )
    command = [sys.executable, "-c", script, str(root), str(root / "providers")]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"anydoc", "liteparse", "python_calamine", "markdownify", "lxml", "bs4", "rapidocr"}
    assert heavy & set(loaded) == set()


async def test_pages_that_only_validate_limits_are_not_sold_unchecked(parser, monkeypatch):
    short = attrs.evolve(gateway_documents.ENDPOINT, max_pages=1)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(gateway.Transient, match="could not be started"):
        await parser.validate(PAGE, short)
