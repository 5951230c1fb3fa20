"""A real gateway around one plugin: its catalogue, its queue on disk, its lanes, its outputs."""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs

from gateway.contracts import NewTask, Validating
from gateway.domain import GenerationRequest, Task, Transfer
from gateway.outputs import DiskOutputs
from gateway.plugins.catalog import Catalog, Registered
from gateway.plugins.manager import BUNDLED, GROUP, PluginManager
from gateway.plugins.upstream import Upstream
from gateway.sandbox.pictures import Pictures
from gateway.settings import Settings
from gateway.store import SqliteStore
from gateway.tasks import TaskTiming, WorkerPool
from gateway.testing.fakes.server import FakeServer
from gateway.testing.provider.rebirth import Rebirth
from gateway.testing.provider.shelf import Shelf
from gateway.web.wire import GenerationBody, request_of

PATIENCE_S = 60.0  # that a scene waits for what should come at once, also on a busy machine
PAYER = "0x" + "a1" * 20
_LOOK_S = 0.01
_RETENTION_S = 86400.0
_BACKOFF_S = 2.0
_sleep = asyncio.sleep  # the real one: scenes shorten the other


@attrs.define
class Clock:
    """Wall time that jumps over what everybody only waits for."""

    ahead_s: float = 0.0

    def __call__(self) -> float:
        """Return Unix seconds."""
        return time.time() + self.ahead_s


def loaded(plugin: Any) -> PluginManager:
    """Return a manager that has the plugin, installed or not."""
    installed = {entry.value.partition(":")[0].strip() for entry in entry_points(group=GROUP)}
    is_there = plugin.__name__ in installed | set(BUNDLED)
    return PluginManager(() if is_there else (plugin,))


def problem_in(manager: PluginManager, plugin: Any) -> str | None:
    """Return why the gateway goes on without a plugin; None where it does not."""
    problems = [one.problem for one in manager.loaded if one.module == plugin.__name__]
    return next((problem for problem in problems if problem is not None), None)


def is_of(plugin: Any, upstream: Upstream) -> bool:
    """Whether a plugin has registered this."""
    return upstream.plugin.partition(":")[0].strip() == str(plugin.__name__)


@attrs.define(kw_only=True)
class Stage:
    """One gateway, which may be stopped, or die, and be started again over the same disk."""

    plugin: Any
    settings: Settings
    slug: str
    fields: dict[str, Any]  # of the request that the scenes make
    pictures: Pictures
    server: FakeServer | None
    clock: Clock = attrs.field(factory=Clock)
    _folder: Path = attrs.field(init=False)
    _lives: int = 0
    rebirth: Rebirth = attrs.field(factory=Rebirth, init=False)
    _bought: int = 0
    catalog: Catalog = attrs.field(init=False)
    store: SqliteStore = attrs.field(init=False)
    pool: WorkerPool = attrs.field(init=False)
    _open: contextlib.AsyncExitStack = attrs.field(init=False)

    @_folder.default
    def _first_folder(self) -> Path:
        return self.settings.data_dir

    async def start(self) -> None:
        """Open what is on disk, and work."""
        self._open = contextlib.AsyncExitStack()
        self.catalog = loaded(self.plugin).catalog(self.settings, self.clock)
        self.store = SqliteStore(self._folder / "gateway.db")
        await self._open.enter_async_context(self.store)
        self._open.push_async_callback(self.catalog.close)
        self.pool = WorkerPool(
            store=self.store,
            catalog=self.catalog,
            output_store=DiskOutputs(self._folder / "outputs", "kit"),
            now=self.clock,
            workers=self.settings.workers,
            retention_s=_RETENTION_S,
            timing=TaskTiming(backoff_s=_BACKOFF_S),
            on_done=lambda _: None,
        )
        shop = attrs.evolve(self.pool.resources, pictures=self.pictures)
        if self.server is not None:
            shop = attrs.evolve(shop, links=Shelf.at(self.server))
        self.pool.resources = shop
        self._open.push_async_callback(self.pool.drain, grace_s=0.0)
        self.pool.start()

    async def stop(self) -> None:
        """Stop as an operator does: lanes give back what they hold."""
        await self._open.aclose()

    async def restart(self) -> None:
        """Stop, and start again."""
        await self.stop()
        self.plugin = self.rebirth.of(self.plugin)
        await self.start()

    async def die_and_start(self) -> None:
        """Start again from what the disk held this very moment, as after a power cut."""
        self._lives += 1
        after = self.settings.data_dir / f"life-{self._lives}"
        after.mkdir()
        source, target = self._folder / "gateway.db", after / "gateway.db"
        await asyncio.to_thread(_copied, source, target)
        await self.stop()
        self.plugin = self.rebirth.of(self.plugin)
        self._folder = after
        await self.start()

    @property
    def sold(self) -> Registered:
        """The endpoint that the scenes buy from."""
        return next(one for one in self.catalog.everything() if one.endpoint.slug == self.slug)

    @property
    def is_on_sale(self) -> bool:
        """Whether a buyer sees the endpoint."""
        return any(endpoint.slug == self.slug for endpoint in self.catalog)

    async def request(self, **changes: Any) -> GenerationRequest:
        """Return the request as the gateway checks it before payment."""
        endpoint, provider = self.sold.endpoint, self.sold.upstream.provider
        request = request_of(GenerationBody(**(self.fields | changes)), endpoint)
        if endpoint.counts_pages and request.attachment is not None:
            request = attrs.evolve(request, pages=1)
        if isinstance(provider, Validating):
            await provider.validate(request, endpoint)
        return request

    async def buy(self, **changes: Any) -> str:
        """Pay for a generation; returns the task's id."""
        request, endpoint = await self.request(**changes), self.sold.endpoint
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

    async def ended(self, task_id: str) -> Task:
        """Return a task once it is done; waits that nobody needs are jumped over."""
        async for _ in self.looks(f"the task {task_id} to end"):
            task = await self.task(task_id)
            if task.is_done:
                return task
            await self._jump(task_id)
        raise AssertionError

    async def bought(self, **changes: Any) -> Task:
        """Pay, and return the task once it is done."""
        return await self.ended(await self.buy(**changes))

    async def _jump(self, task_id: str) -> None:
        """Put the clock forward to when the task is due and its provider may be asked."""
        due = await asyncio.to_thread(_due_at, self._folder / "gateway.db", task_id)
        if due is None:
            return
        wait_s = self.sold.upstream.wait_s
        waits = (due - self.clock(), 0.0 if wait_s == float("inf") else wait_s)
        if max(waits) > 0:
            self.clock.ahead_s += max(waits) + 0.001
            self.pool.wake()

    async def looks(self, what: str) -> AsyncIterator[None]:
        """Yield again and again, for as long as a scene has patience."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_S:
            mistakes = self.server.mistakes if self.server is not None else []
            if mistakes:
                raise AssertionError(mistakes[0])
            yield
            await _sleep(_LOOK_S)
        raise AssertionError(f"Waited {PATIENCE_S:.0f} s in vain for {what}.")


def _due_at(database: Path, task_id: str) -> float | None:
    """Return when a task that no lane works on is due."""
    with contextlib.closing(sqlite3.connect(database)) as db:
        row = db.execute(
            "SELECT due_at FROM tasks WHERE id = ? AND lease_token IS NULL"
            " AND status IN ('queued', 'processing')",
            (task_id,),
        ).fetchone()
    return row[0] if row is not None else None


def _copied(source: Path, target: Path) -> None:
    with (
        contextlib.closing(sqlite3.connect(source)) as ours,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        ours.backup(copy)


async def short_sleep(delay: float, result: Any = None) -> Any:
    """Sleep for a moment where somebody wants to sleep for long."""
    return await _sleep(min(delay, _LOOK_S), result)


@contextlib.contextmanager
def hurried() -> Iterator[None]:
    """Shorten every pause between polls, downloads and heartbeats; time-outs stay as they are."""
    asyncio.sleep = short_sleep
    try:
        yield
    finally:
        asyncio.sleep = _sleep
