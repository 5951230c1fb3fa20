"""Loads the sandbox functions of plugins' capabilities before anything is sold by them.

They may import slow libraries, so nothing waits for them at the start: a sale waits instead.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import attrs
import structlog

from gateway.catalog.catalog import Catalog
from gateway.domain import Capability, Endpoint, InSandbox
from gateway.errors import ExecutionError
from gateway.sandbox import Sandbox, SandboxBroken, SandboxLost

# Between two trials of functions that cannot be loaded.
_AGAIN_S = 60.0
# The same if it is not known, because no process could be started. It doubles up to the other, and
# no request tries within it.
_UNKNOWN_S = 1.0
# A module may end its process at each import. So that is not waited for without end.
_MOST_LOSSES = 3
_NOT_KNOWN = (
    "the functions of the capability {} cannot be loaded: their process ends, or does not answer. "
    "The log may say why. Repair its plugin"
)
_log = structlog.get_logger()


def functions_of(capability: Capability) -> Iterator[InSandbox]:
    """Yield the functions that a capability declares."""
    reads = (kind.read for kind in capability.files)
    checks = (kind.check for kind in capability.results)
    yield from dict.fromkeys(one for one in (*reads, *checks) if one is not None)


@attrs.define(eq=False, repr=False)
class DeclaredFunctions:
    """Which capabilities' functions can be loaded. Endpoints of the others are off sale."""

    catalog: Catalog
    # Called once the tasks of a capability may run.
    on_proven: Callable[[], None] = lambda: None
    _again_s: float = attrs.field(default=_AGAIN_S, alias="again_s")
    _loaded: set[str] = attrs.field(factory=set, init=False)
    _broken: set[str] = attrs.field(factory=set, init=False)
    # When nothing was known of a capability, in loop time.
    _lost_at: dict[str, float] = attrs.field(factory=dict, init=False)
    # How often in a row.
    _losses: dict[str, int] = attrs.field(factory=dict, init=False)
    # Set when a reload may have named further capabilities.
    _more: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    # One at a time, because each process takes memory.
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def begin(self) -> None:
        """Let paid tasks wait until the functions of their capabilities are loaded."""
        self.extend()

    def extend(self) -> None:
        """Let tasks wait for what endpoints name since a reload, too; `run` loads it."""
        tried = self._loaded | self._broken
        found = [one for one in self._capabilities if one.name not in tried]
        self.catalog.unproven |= {one.name for one in found if any(functions_of(one))}
        self._more.set()

    async def run(self) -> None:
        """Load all functions, also those that reloads add."""
        while True:
            self._more.clear()
            await self._load_all()
            await self._more.wait()

    async def _load_all(self) -> None:
        """Load all functions; repeat for those that cannot be loaded."""
        pause_s = _UNKNOWN_S
        while waiting := [one for one in self._capabilities if one.name not in self._loaded]:
            for capability in waiting:
                await self._find_unless_lost(capability)
            is_unknown = any(one.name in self.catalog.unproven for one in waiting)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s if is_unknown else self._again_s):
                    await self._more.wait()
            self._more.clear()
            pause_s = min(2 * pause_s, self._again_s)

    async def check_all(self) -> None:
        """Load all functions once; endpoints whose functions cannot be loaded are then off sale."""
        for capability in self._capabilities:
            await self._find_unless_lost(capability)
            if capability.name in self._losses:
                self.catalog.note_unchecked(capability.name, _NOT_KNOWN.format(capability.name))

    async def ensure(self, endpoint: Endpoint, *, timeout_s: float = _AGAIN_S) -> None:
        """Wait until the functions of an endpoint are loaded, for `timeout_s` seconds at most.

        Raises `ExecutionError` if they cannot be loaded, or if that is not known now.
        """
        declared = endpoint.declared
        if declared is None or declared.name in self._loaded:
            return
        try:
            if declared.name not in self._broken:
                async with asyncio.timeout(timeout_s):
                    await self._find(declared)
        except (SandboxLost, TimeoutError) as error:
            raise ExecutionError("The request cannot be checked now. Try again later.") from error
        if declared.name in self._broken:
            raise ExecutionError("This endpoint's results cannot be checked. Try again later.")

    def _check_rest(self, name: str) -> None:
        """Raise `SandboxLost` if nothing was known just now: requests start no more processes."""
        lost_at = self._lost_at.get(name)
        if lost_at is not None and asyncio.get_running_loop().time() - lost_at < _UNKNOWN_S:
            raise SandboxLost(has_begun=False)

    @property
    def _capabilities(self) -> list[Capability]:
        return self.catalog.named_capabilities()

    async def _find_unless_lost(self, capability: Capability) -> None:
        try:
            await self._find(capability)
        except SandboxLost:
            _log.warning("capability.not_checked", capability=capability.name)

    def _note_lost(self, name: str) -> None:
        """Take the endpoints off sale after some trials without a result; trials go on."""
        self._losses[name] = self._losses.get(name, 0) + 1
        if self._losses[name] == _MOST_LOSSES:
            self.catalog.note_unchecked(name, _NOT_KNOWN.format(name))

    async def _find(self, capability: Capability) -> None:
        """Load the functions of a capability; raises `SandboxLost` if nothing is known then."""
        async with self._turn:
            if capability.name in self._loaded:
                return
            self._check_rest(capability.name)
            try:
                problem = await _find_problem(capability)
            except (SandboxLost, asyncio.CancelledError) as error:
                self._lost_at[capability.name] = asyncio.get_running_loop().time()
                if isinstance(error, SandboxLost):
                    self._note_lost(capability.name)
                raise
        self._losses.pop(capability.name, None)
        if problem:
            if capability.name not in self._broken:
                _log.error("capability.broken", capability=capability.name, error=problem)
            self._broken.add(capability.name)
        else:
            self._loaded.add(capability.name)
            self._broken.discard(capability.name)
        self.catalog.note_unchecked(capability.name, problem)
        self.catalog.unproven.discard(capability.name)
        self.on_proven()


async def _find_problem(capability: Capability) -> str:
    """Return the first problem, or an empty text; raises `SandboxLost` if that is not known."""
    for one in functions_of(capability):
        # A machine that was short of something for a moment is asked once more.
        if await _find_problem_of(one) and (problem := await _find_problem_of(one)):
            return (
                f"the function {one.function} of the capability {capability.name} cannot be "
                f"loaded ({problem}), so nothing checks its files or results. Repair its plugin"
            )
    return ""


async def _find_problem_of(one: InSandbox) -> str:
    sandbox = Sandbox(function=one.function, warm=one.warm)
    try:
        await sandbox.load()
    except SandboxBroken as error:
        return error.problem
    finally:
        sandbox.close()
    return ""
