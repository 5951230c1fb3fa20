"""Load on one HTTP route, by wrk if it is installed, else by a small Python client."""

import asyncio
import itertools
import json
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import uvloop
from place import CLIENT_CORE

HOW_TO_GET_WRK = (
    "wrk is not installed (get it with `apt-get update && apt-get install -y wrk`), so the load "
    "comes from a Python client, which reaches its own limit at about 5,000 responses a second."
)
# The number of client addresses that a target cycles through.
ADDRESSES = 20_000
_LUA = """
wrk.method, wrk.body = %s, %s
if wrk.body then wrk.headers["Content-Type"] = "application/json" end
%s
function done(summary, latency)
  local failed = summary.errors.connect + summary.errors.read + summary.errors.write
  io.write(string.format('\\nRESULT{"requests":%%d,"s":%%f,"p50":%%f,"p99":%%f,"refused":%%d,"failed":%%d}',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, summary.errors.status, failed + summary.errors.timeout))
end
"""


@attrs.frozen(kw_only=True)
class Target:
    """One request to repeat; `body` makes it a POST.

    `address_header` names the header with a different client address in each request.
    """

    name: str
    port: int
    path: str
    body: str | None = None
    status: int = 200
    address_header: str | None = None


@attrs.frozen(kw_only=True)
class Load:
    """The result of a load."""

    rate: float  # responses per second
    p50_ms: float
    p99_ms: float
    wrong: int  # responses with another status, and broken connections
    answers: int = 0
    mean_ms: float = 0.0  # 0 if wrk made the load
    worst_ms: float = 0.0
    first_wrong: bytes = b""  # the body of the first response with another status


NextRequest = Callable[[], bytes]


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
        script.write_text(_LUA % (method, body, _lua_addresses(target)))
        pinned = ["taskset", "-c", str(CLIENT_CORE), "wrk", "-t1", f"-c{connections}"]
        command = [*pinned, f"-d{math.ceil(seconds)}s", "-s", str(script), url]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = json.loads(printed.rpartition("RESULT")[2])
    is_refusal = target.status >= 400  # what wrk counts as an error
    refused = abs(found["requests"] - found["refused"]) if is_refusal else found["refused"]
    return Load(
        rate=found["requests"] / found["s"],
        p50_ms=found["p50"],
        p99_ms=found["p99"],
        wrong=refused + found["failed"],
        answers=found["requests"],
    )


def _lua_addresses(target: Target) -> str:
    """Return the Lua that prepares all requests, each with another address."""
    if target.address_header is None:
        return ""
    return f"""
local requests, turn = {{}}, 0
function init(args)
  for n = 1, {ADDRESSES} do
    wrk.headers["{target.address_header}"] =
      string.format("10.%d.%d.%d", math.floor(n / 62500), math.floor(n / 250) % 250, n % 250)
    requests[n] = wrk.format()
  end
end
function request()
  turn = turn % {ADDRESSES} + 1
  return requests[turn]
end"""


def first_answer(target: Target) -> tuple[int, bytes]:
    """Send one request and return status and body; wrk counts a 404 like a 402."""

    async def ask() -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        writer.write(_requests(target)())
        answer = await _read_answer(reader)
        writer.close()
        return answer

    return asyncio.run(ask())


def _requests(target: Target) -> NextRequest:
    """Return a function for the target's next request, cycling through the addresses."""
    if target.address_header is None:
        request = request_bytes(target.path, target.body)
        return lambda: request
    addresses = (f"10.{n // 62500}.{n // 250 % 250}.{n % 250}" for n in range(ADDRESSES))
    header = target.address_header
    return itertools.cycle(
        [request_bytes(target.path, target.body, {header: one}) for one in addresses]
    ).__next__


def _in_child(target: Target, connections: int, seconds: float) -> Load:
    return repeat_here(target, [_requests(target)] * connections, seconds)


def repeat_here(target: Target, requests: Sequence[NextRequest], seconds: float) -> Load:
    """Send from this process, moved to the client's core meanwhile."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {CLIENT_CORE})
    try:
        return uvloop.run(repeat(target, requests, seconds))
    finally:
        os.sched_setaffinity(0, cores)


def request_bytes(path: str, body: str | None, headers: Mapping[str, str] | None = None) -> bytes:
    """Return a request as sent on the wire."""
    method = "POST" if body is not None else "GET"
    data = (body or "").encode()
    sent = {"Host": "localhost", **(headers or {})}
    if data:
        sent |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + data


async def repeat(target: Target, requests: Sequence[NextRequest], seconds: float) -> Load:
    """Send requests over one connection per entry of `requests`, which returns the next request.

    Each connection sends at least once, and waits for the response to its last request.
    """
    times: list[float] = []
    refusals: list[bytes] = []
    deadline = time.perf_counter() + seconds

    async def client(next_request: NextRequest) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        while True:
            began = time.perf_counter()
            writer.write(next_request())
            status, body = await _read_answer(reader)
            ended = time.perf_counter()
            times.append(ended - began)
            if status != target.status:
                refusals.append(body)
            if ended >= deadline:
                break
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*map(client, requests))
    elapsed = time.perf_counter() - began
    ranked = sorted(times)
    return Load(
        rate=(len(ranked) - len(refusals)) / elapsed,
        p50_ms=ranked[len(ranked) // 2] * 1000,
        p99_ms=ranked[len(ranked) * 99 // 100] * 1000,
        wrong=len(refusals),
        answers=len(ranked),
        mean_ms=sum(ranked) / len(ranked) * 1000,
        worst_ms=ranked[-1] * 1000,
        first_wrong=refusals[0] if refusals else b"",
    )


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read one response and return its status and body."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    body = await reader.readexactly(int(length))
    return int(head[9:12]), body


def numbers() -> Iterator[int]:
    """Yield numbers that differ between runs, for transaction hashes."""
    start = time.time_ns() << 64
    yield from iter(range(start, start + 2**32))
