"""The gateway under test: one plugin with a real catalogue, queue, worker pool and outputs."""

import asyncio
import contextlib
import importlib
import json
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Self
from urllib.parse import urlsplit

import attrs

from gateway.catalog.catalog import Catalog
from gateway.catalog.registered import Registered
from gateway.catalog.upstream import Upstream
from gateway.contracts import NewTask, Validating
from gateway.domain import Endpoint, GenerationRequest, Task, Transfer
from gateway.errors import InvalidInput, Transient
from gateway.outputs import DiskOutputs
from gateway.outputs.downloads import Downloader, SendTrace, Transport, read_body
from gateway.plugins.manager import PluginManager
from gateway.sandbox.kinds import ResultChecks
from gateway.settings import Settings
from gateway.store import SqliteStore
from gateway.tasks import TaskTiming, WorkerPool
from gateway.web.bodies import GenerationBody, request_of
from gateway_testing.fakes.server import FakeServer

# A scene's timeout, long because the machine may be busy.
PATIENCE_S = 60.0
PAYER = "0x" + "a1" * 20
_POLL_S = 0.01
_RETENTION_S = 86400.0
_BACKOFF_S = 2.0
# Scenes replace `asyncio.sleep`; this is the real one.
_sleep = asyncio.sleep


@attrs.define
class Clock:
    """Wall time that scenes advance instead of waiting."""

    ahead_s: float = 0.0

    def __call__(self) -> float:
        """Return Unix seconds."""
        return time.time() + self.ahead_s


# A sixteenth of the real client's limit.
_MAX_BYTES = 4_000_000


@attrs.define
class FileServer(Downloader):
    """Replaces the gateway's client for links, which needs a server with a certificate."""

    url: str
    host: str

    @classmethod
    def of(cls, server: FakeServer) -> Self:
        return cls(server.url, server.api.output_host, max_bytes=_MAX_BYTES)

    async def _fetch_link(
        self, transport: Transport, url: str, timeout_s: float
    ) -> tuple[int, bytes]:
        """Return the fake API's file for a link; `download` checks it as in production."""
        link = urlsplit(url)
        if link.scheme != "https" or link.hostname != self.host:
            raise Transient("The link is none that the API gave.")
        where = transport.url(self.url + link.path)
        options = transport.request_options("GET", {}, timeout_s)
        async with transport.direct(where, options, SendTrace()) as response:
            body = await read_body(response, max_bytes=self.max_bytes)
            return response.status_code, body


@attrs.define
class Reimporter:
    """Imports a plugin again, and finally restores the modules that the tests had imported."""

    _before: dict[str, ModuleType] = attrs.field(factory=dict, init=False)

    def reimport(self, plugin: Any) -> Any:
        """Import the plugin again; return it unchanged if it is not a module."""
        name = plugin.__name__
        if sys.modules.get(name) is not plugin:
            return plugin
        own = [module for module in sys.modules if f"{module}.".startswith(f"{name}.")]
        before = {module: sys.modules.pop(module) for module in own}
        self._before = self._before or before
        return importlib.import_module(name)

    def restore(self) -> None:
        """Restore the modules imported before the first `reimport`."""
        sys.modules.update(self._before)


def manager_with(plugin: Any) -> PluginManager:
    """Return a plugin manager with the plugin, whether it is installed or not."""
    manager = PluginManager()
    return manager if plugin.__name__ in manager.modules() else PluginManager((plugin,))


def problem_in(manager: PluginManager, plugin: Any) -> str | None:
    """Return why the manager left a plugin out; None if it did not."""
    problems = [one.problem for one in manager.loaded if one.module == plugin.__name__]
    return next((problem for problem in problems if problem is not None), None)


def is_of(plugin: Any, upstream: Upstream) -> bool:
    """Whether a plugin registered this provider."""
    return upstream.plugin.partition(":")[0].strip() == str(plugin.__name__)


@attrs.define(kw_only=True)
class GatewayUnderTest:
    """One gateway that scenes stop, crash and restart on the same disk."""

    plugin: Any
    settings: Settings
    slug: str
    fields: dict[str, Any]
    """The buyer's request."""
    results: ResultChecks
    server: FakeServer | None
    clock: Clock = attrs.field(factory=Clock)
    pages: int = 1
    """Pages of the buyer's document, as if counted before payment."""
    _folder: Path = attrs.field(init=False)
    _lives: int = 0
    reimporter: Reimporter = attrs.field(factory=Reimporter, init=False)
    _bought: int = 0
    catalog: Catalog = attrs.field(init=False)
    store: SqliteStore = attrs.field(init=False)
    pool: WorkerPool = attrs.field(init=False)
    _open: contextlib.AsyncExitStack = attrs.field(init=False)

    @_folder.default
    def _first_folder(self) -> Path:
        return self.settings.data_dir

    async def start(self) -> None:
        """Open the files on disk and start the workers."""
        self._open = contextlib.AsyncExitStack()
        self.catalog = manager_with(self.plugin).catalog(self.settings, self.clock)
        self.store = SqliteStore(self._folder / "gateway.db")
        await self._open.enter_async_context(self.store)
        self._open.push_async_callback(self.catalog.close)
        self.pool = WorkerPool(
            store=self.store,
            catalog=self.catalog,
            output_store=DiskOutputs(self._folder / "outputs", "kit", self.catalog.media_types),
            now=self.clock,
            workers=self.settings.workers,
            retention_s=_RETENTION_S,
            timing=TaskTiming(backoff_s=_BACKOFF_S),
            on_done=lambda _: None,
        )
        resources = attrs.evolve(self.pool.resources, results=self.results)
        if self.server is not None:
            resources = attrs.evolve(resources, links=FileServer.of(self.server))
        self.pool.resources = resources
        self._open.push_async_callback(self.pool.drain, grace_s=0.0)
        self.pool.start()

    async def stop(self) -> None:
        """Stop as an operator does: workers return their leases."""
        await self._open.aclose()

    async def restart(self) -> None:
        """Stop and start again, with the plugin imported again."""
        await self.stop()
        self.plugin = self.reimporter.reimport(self.plugin)
        await self.start()

    async def crash_and_restart(self) -> None:
        """Restart from the current state of the disk, as after a power cut."""
        self._lives += 1
        after = self.settings.data_dir / f"life-{self._lives}"
        after.mkdir()
        source, target = self._folder / "gateway.db", after / "gateway.db"
        await asyncio.to_thread(_copy_database, source, target)
        await self.stop()
        self.plugin = self.reimporter.reimport(self.plugin)
        self._folder = after
        await self.start()

    @property
    def sold(self) -> Registered:
        """The endpoint that the scenes buy from."""
        return next(one for one in self.catalog.everything() if one.endpoint.slug == self.slug)

    @property
    def is_on_sale(self) -> bool:
        """Whether the endpoint is on sale."""
        return any(endpoint.slug == self.slug for endpoint in self.catalog)

    async def request(self, **changes: Any) -> GenerationRequest:
        """Return the buyer's request after the checks that precede payment."""
        endpoint, provider = self.sold.endpoint, self.sold.upstream.provider
        request = request_of(GenerationBody(**(self.fields | changes)), endpoint)
        if self.sold.counts_pages and request.attachment is not None:
            request = attrs.evolve(request, pages=self.pages)
        if isinstance(provider, Validating):
            await _validate(provider, request, endpoint)
        return request

    async def buy(self, **changes: Any) -> str:
        """Pay for a generation; returns the task's id."""
        request, endpoint = await self.request(**changes), self.sold.endpoint
        if self.server is not None and self.server.files != "page":
            self.server.made.follow(endpoint, request)
        self._bought += 1
        tx_hash = f"0x{self._bought:064x}"
        price = endpoint.price_of(request)
        task = NewTask(
            id=f"kit-{self._bought}",
            endpoint=endpoint,
            request=request,
            request_hash=request.fingerprint(endpoint.slug),
            price_units=price,
            created_at=self.clock(),
        )
        paid = Transfer(tx_hash=tx_hash, log_index=0, sender=PAYER, amount_units=price)
        await self.store.accept_direct(task, tx_hash, [paid], None)
        self.pool.wake()
        return task.id

    async def task(self, task_id: str) -> Task:
        """Return a task as it is now."""
        task = await self.store.task(task_id)
        if task is None:
            raise LookupError(task_id)
        return task

    async def text_of(self, task: Task) -> str:
        """Return the whole text of a task's result; empty without text."""
        result = task.result
        if result is None or result.long_text is None:
            return (result.text if result is not None else None) or ""
        numbers = range(result.long_text.parts)
        parts = [await self.store.text_part(task.id, number) or b"" for number in numbers]
        return str(json.loads(b'"%b"' % b"".join(parts)))

    async def wait_for_end(self, task_id: str) -> Task:
        """Return a task once it is done. The clock is advanced over every wait."""
        async for _ in self.wait_for(f"the task {task_id} to end"):
            task = await self.task(task_id)
            if task.is_done:
                return task
            await self._put_clock_forward(task_id)
        raise AssertionError

    async def buy_and_wait(self, **changes: Any) -> Task:
        """Pay, and return the task once it is done."""
        return await self.wait_for_end(await self.buy(**changes))

    async def _put_clock_forward(self, task_id: str) -> None:
        """Advance the clock until the task is due and its provider has a free slot."""
        due = await asyncio.to_thread(_due_at, self._folder / "gateway.db", task_id)
        if due is None:
            return
        wait_s = self.sold.upstream.wait_s
        waits = (due - self.clock(), 0.0 if wait_s == float("inf") else wait_s)
        if max(waits) > 0:
            self.clock.ahead_s += max(waits) + 0.001
            self.pool.wake()

    async def wait_for(self, what: str) -> AsyncIterator[None]:
        """Yield every 0.01 s until the caller breaks; fail after `PATIENCE_S`, naming `what`."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_S:
            mistakes = self.server.mistakes if self.server is not None else []
            if mistakes:
                raise AssertionError(mistakes[0])
            yield
            await _sleep(_POLL_S)
        raise AssertionError(f"Waited {PATIENCE_S:.0f} s in vain for {what}.")


async def _validate(provider: Validating, request: GenerationRequest, endpoint: Endpoint) -> None:
    """Validate a request as before payment; fail with advice for the author."""
    try:
        checking = provider.validate(request, endpoint)
        if checking is not None:
            await checking
    except InvalidInput as refusal:
        raise AssertionError(
            f"`validate` refuses the kit's request: {refusal} Give the kit one that your vendor "
            "takes: `prompt` or `file` of your ProviderContract. If a choice is the reason, do not "
            "offer it."
        ) from None


def _due_at(database: Path, task_id: str) -> float | None:
    """Return when a task without a lease is due; None if it is leased or done."""
    with contextlib.closing(sqlite3.connect(database)) as db:
        row = db.execute(
            "SELECT due_at FROM tasks WHERE id = ? AND lease_token IS NULL"
            " AND status IN ('queued', 'processing')",
            (task_id,),
        ).fetchone()
    return row[0] if row is not None else None


def _copy_database(source: Path, target: Path) -> None:
    with (
        contextlib.closing(sqlite3.connect(source)) as ours,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        ours.backup(copy)


async def short_sleep(delay: float, result: Any = None) -> Any:
    """Sleep at most 0.01 s."""
    return await _sleep(min(delay, _POLL_S), result)


@contextlib.contextmanager
def shortened_sleeps() -> Iterator[None]:
    """Shorten every sleep between polls, downloads and heartbeats; timeouts do not change."""
    asyncio.sleep = short_sleep
    try:
        yield
    finally:
        asyncio.sleep = _sleep
