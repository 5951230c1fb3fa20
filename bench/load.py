"""Load on one HTTP route: wrk where it is installed, else a small client of our own."""

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import uvloop
from place import CLIENT_CORE

HOW_TO_GET_WRK = (
    "wrk is not installed (get it with `apt-get update && apt-get install -y wrk`), so the load "
    "comes from a client in Python, which is itself the limit above some 5,000 answers a second."
)
_LUA = """
wrk.method, wrk.body = %s, %s
wrk.headers["Content-Type"] = "application/json"
function done(summary, latency)
  local failed = summary.errors.connect + summary.errors.read + summary.errors.write
  io.write(string.format('\\nRESULT{"requests":%%d,"s":%%f,"p50":%%f,"p99":%%f,"refused":%%d,"failed":%%d}',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, summary.errors.status, failed + summary.errors.timeout))
end
"""


@attrs.frozen(kw_only=True)
class Target:
    """One request to repeat; `body` makes it a POST."""

    name: str
    port: int
    path: str
    body: str | None = None
    status: int = 200


@attrs.frozen(kw_only=True)
class Load:
    """What came of it."""

    rate: float  # answers a second
    p50_ms: float
    p99_ms: float
    wrong: int  # answers of another status, and connections that broke


def has_wrk() -> bool:
    return shutil.which("wrk") is not None


def measure(target: Target, *, connections: int, seconds: float) -> Load:
    """Repeat a request over keep-alive connections, from the client's core."""
    if has_wrk():
        return _with_wrk(target, connections, seconds)
    return _in_child(target, connections, seconds)


def _with_wrk(target: Target, connections: int, seconds: float) -> Load:
    method = json.dumps("POST" if target.body else "GET")
    body = json.dumps(target.body) if target.body else "nil"
    url = f"http://127.0.0.1:{target.port}{target.path}"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "request.lua"
        script.write_text(_LUA % (method, body))
        pinned = ["taskset", "-c", str(CLIENT_CORE), "wrk", "-t1", f"-c{connections}"]
        command = [*pinned, f"-d{seconds:g}s", "-s", str(script), url]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = json.loads(printed.rpartition("RESULT")[2])
    is_refusal = target.status >= 400  # what wrk counts as an error
    refused = abs(found["requests"] - found["refused"]) if is_refusal else found["refused"]
    return Load(
        rate=found["requests"] / found["s"],
        p50_ms=found["p50"],
        p99_ms=found["p99"],
        wrong=refused + found["failed"],
    )


def _in_child(target: Target, connections: int, seconds: float) -> Load:
    """Measure in this process, moved to the client's core for the while."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {CLIENT_CORE})
    try:
        request = request_bytes(target.path, target.body)
        runs = repeat(target, lambda: request, connections=connections, seconds=seconds)
        return uvloop.run(runs)
    finally:
        os.sched_setaffinity(0, cores)


def request_bytes(path: str, body: str | None) -> bytes:
    """Return a request as it goes over the wire."""
    method = "POST" if body is not None else "GET"
    data = (body or "").encode()
    length = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n" if data else ""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n".encode() + data


async def repeat(
    target: Target, next_request: Callable[[], bytes], *, connections: int, seconds: float
) -> Load:
    """Send what `next_request` returns over each connection, one after the other."""
    times: list[float] = []
    wrong = 0
    deadline = time.perf_counter() + seconds

    async def client() -> None:
        nonlocal wrong
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        while (began := time.perf_counter()) < deadline:
            writer.write(next_request())
            status = await _read_answer(reader)
            times.append(time.perf_counter() - began)
            wrong += status != target.status
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(connections)))
    elapsed = time.perf_counter() - began
    ranked = sorted(times)
    return Load(
        rate=(len(ranked) - wrong) / elapsed,
        p50_ms=ranked[len(ranked) // 2] * 1000,
        p99_ms=ranked[len(ranked) * 99 // 100] * 1000,
        wrong=wrong,
    )


async def _read_answer(reader: asyncio.StreamReader) -> int:
    """Read one answer to its end and return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    return int(head[9:12])


def numbers() -> Iterator[int]:
    """Yield numbers that differ from run to run, as transaction hashes need."""
    start = time.time_ns() << 64
    yield from iter(range(start, start + 2**32))
