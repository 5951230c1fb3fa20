"""The sandbox: calls a function in a new, confined child process each time."""

import asyncio
import math
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

import attrs

from gateway.errors import ChecksFull
from gateway.sandbox import memory_budget
from gateway.sandbox.child import work
from gateway.sandbox.child.confinement import memory_bytes
from gateway.sandbox.errors import (
    End,
    SandboxBroken,
    SandboxEnded,
    SandboxLost,
    SandboxRefusal,
)
from gateway.sandbox.limits import SandboxLimits
from gateway.sandbox.memory_budget import MemoryBudget
from gateway.sandbox.memory_reservation import GaveWay, Reservation
from gateway.sandbox.process import (
    NOT_STARTED,
    Loaded,
    Usage,
    WarmedProcess,
    read_answer,
    send_call,
)

# Loading the modules may take this long on a busy machine.
_START_S = 25.0
# A child that has answered ends within this time, or is not waited for.
_END_S = 1.0


@attrs.define(eq=False, repr=False)
class Meter:
    """CPU seconds of the sandboxed calls within `metered`."""

    cpu_s: float = 0.0


_current: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered(meter: Meter) -> Iterator[None]:
    """Charge sandboxed calls within the block to a meter, including those of tasks it starts.

    Such calls are work before a payment; see `SandboxLimits.children`.
    """
    token = _current.set(meter)
    try:
        yield
    finally:
        _current.reset(token)


def current_meter() -> Meter | None:
    """Return the meter of the current call; None for paid work."""
    return _current.get()


@attrs.define(kw_only=True, eq=False, repr=False)
class Sandbox:
    """Calls a function on untrusted bytes in a confined process.

    A warmed process, which has imported the function, forks a child for each call in 1 ms. It
    starts with the first call and exits when idle. Neither process has the gateway's environment. A
    child cannot open files or sockets, start or reach other processes, and is killed when its
    caller is cancelled.
    """

    function: str
    """`"package.module:name"`. Takes `bytes` and `str`, returns `bytes`, and may raise
    `gateway.SandboxRefusal`. The `__init__` of `gateway` and of the packages around the module runs
    in the warmed process only if one of their names is used. Put the function into its own module,
    and import the refusal from `gateway.sandbox.errors`: then the warmed process takes 15 MB plus
    the module's imports."""

    warm: tuple[str, ...] = ()
    """Modules to load before the fork, in this order: `"module"` is imported; for `"module:name"`
    the function is also called. A child cannot import anything else."""

    limits: SandboxLimits = attrs.field(factory=SandboxLimits)
    used_at: float = attrs.field(factory=time.monotonic, init=False)
    paid_start_at: float = attrs.field(default=-math.inf, init=False)
    _budget: MemoryBudget = attrs.field(factory=lambda: memory_budget.SHARED)
    _start_s: float = attrs.field(default=_START_S, init=False)
    _running: WarmedProcess | None = attrs.field(default=None, init=False)
    _starting: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def call(self, *arguments: bytes | str) -> bytes:
        """Call the function in a new child and return its result. Cancelling kills the child.

        Raises `SandboxRefusal` if the function raised it, `SandboxEnded` if the child hit a limit
        or crashed, and `SandboxLost` if the machine could not start a child, or ended it.
        """
        return b"".join(await self.call_parts(*arguments))

    async def call_parts(self, *arguments: bytes | str) -> tuple[bytes, ...]:
        """Like `call`, for a function that returns a list of `bytes`. Does not copy large parts."""
        reservation = self._reserve(arguments)
        # A call has no side effects, so it can be repeated.
        with suppress(GaveWay):
            return await self._call_within(reservation, arguments)
        try:
            return await self._call_within(reservation, arguments)
        except GaveWay:
            raise SandboxLost("The machine lacks memory for the sandboxed process.") from None

    def _reserve(self, arguments: tuple[bytes | str, ...]) -> Reservation:
        is_paid = current_meter() is None
        limits = self.limits if is_paid else self.limits.before_payment()
        return self._budget.reserve(
            self,
            size=sum(map(len, arguments)),
            most_bytes=memory_bytes(limits.memory_bytes),
            is_paid=is_paid,
            at_once=limits.children,
        )

    async def _call_within(
        self, reservation: Reservation, arguments: tuple[bytes | str, ...]
    ) -> tuple[bytes, ...]:
        """Call when there is memory, a second time if the warmed process is gone.

        Raises `GaveWay` if the child took more memory than there is.
        """
        async with self._budget.held(reservation):
            # The warmed process may just have exited because it was idle, or been killed.
            with suppress(ConnectionError):
                return await self._call_once(reservation, arguments)
            try:
                return await self._call_once(reservation, arguments)
            except ConnectionError as error:
                raise SandboxLost(NOT_STARTED, has_begun=False) from error

    @property
    def is_running(self) -> bool:
        """Whether the warmed process runs."""
        return self._running is not None and self._running.is_alive

    async def start(self) -> None:
        """Start the warmed process now, so that the first call need not wait for it."""
        await self._ensure_started()

    async def load(self) -> None:
        """Start the warmed process, and wait until it has loaded the function.

        Raises `SandboxBroken` if it cannot be loaded, and `SandboxLost` if that is not known. Any
        request may cause it, so this is unpaid work.
        """
        reservation = Reservation(need_bytes=0, most_bytes=0, is_paid=False, owner=self)
        try:
            async with self._budget.held(reservation):
                tag, parts = await self._ask_whether_loaded()
        except ChecksFull as error:
            raise SandboxLost(NOT_STARTED, has_begun=False) from error
        words = parts[0].decode(errors="replace")
        if words.partition("\n")[0] != End.DONE:
            raise _error_for(tag, words)

    async def _ask_whether_loaded(self) -> tuple[bytes, tuple[bytes, ...]]:
        running, _ = await self._ensure_started()
        try:
            async with asyncio.timeout(self._start_s):
                with running.conversation(work.LOAD) as conversation:
                    return await read_answer(
                        conversation, 0, lambda loaded, _: self._budget.note_loaded(self, loaded)
                    )
        except (TimeoutError, OSError, EOFError) as error:
            running.close()
            raise SandboxLost(NOT_STARTED, has_begun=False) from error

    def close(self) -> None:
        """End the warmed process and its children; the next call starts another."""
        if self._running is not None:
            self._running.close()
            self._running = None

    async def _ensure_started(self) -> tuple[WarmedProcess, bool]:
        """Return the warmed process, and whether this call has started it."""
        async with self._starting:
            if self._running is not None and self._running.is_alive:
                return self._running, False
            self.close()
            limits = attrs.evolve(self.limits, idle_s=self._budget.idle_s(self.limits.idle_s))
            try:
                self._running = await asyncio.to_thread(
                    WarmedProcess.start, self.function, self.warm, limits
                )
            except RuntimeError as error:
                # No new thread could be started, if it is no `SandboxLost` already.
                raise SandboxLost(NOT_STARTED, has_begun=False) from error
            self._budget.note_start(self, is_paid=current_meter() is None)
            return self._running, True

    async def _call_once(
        self, reservation: Reservation, arguments: tuple[bytes | str, ...]
    ) -> tuple[bytes, ...]:
        """Call once; raises `ConnectionError` if the warmed process is gone."""
        running, is_new = await self._ensure_started()
        try:
            async with asyncio.timeout(self._start_s + self.limits.wall_s):
                with _charged() as charge:
                    charge.pays_load = is_new
                    tag, parts = await self._converse(running, reservation, arguments, charge)
        except TimeoutError as error:
            running.close()
            raise SandboxLost("The sandboxed process does not answer.") from error
        except EOFError as error:
            # If only the child has ended, those of other calls go on.
            await running.close_if_ended()
            raise ConnectionError("The child is gone.") from error
        except OSError as error:
            running.close()
            raise ConnectionError("The warmed process is gone.") from error
        except OverflowError as error:
            raise SandboxEnded(End.CRASHED, str(error)) from None
        if tag != work.ANSWER:
            ended = _error_for(tag, parts[0].decode(errors="replace"))
            if isinstance(ended, SandboxBroken):
                # The next call tries again: a machine may have been short of something.
                running.close()
            raise ended
        return parts

    async def _converse(
        self,
        running: WarmedProcess,
        reservation: Reservation,
        arguments: tuple[bytes | str, ...],
        charge: "_Charge",
    ) -> tuple[bytes, tuple[bytes, ...]]:
        """Return the child's answer once it has ended, which frees its memory."""

        def note_begin(loaded: Loaded, statm: int | None) -> None:
            self._budget.note_child(reservation, statm)
            self._budget.note_loaded(self, loaded)
            charge.load_s = loaded.cpu_s

        message = work.PAID if reservation.is_paid else work.UNPAID
        with running.conversation(message) as conversation:
            await send_call(conversation, arguments)
            tag, parts = await read_answer(conversation, self.limits.answer_bytes, note_begin)
            usage = await _read_usage(conversation, tag, parts)
            self._budget.note_end(reservation, usage)
            charge.cpu_s = None if usage is None else usage.cpu_s
        return tag, parts


@attrs.define(eq=False, repr=False)
class _Charge:
    """The CPU time of a call; until it is reported, its duration counts."""

    cpu_s: float | None = None
    # Whether the call has started the warmed process, whose loading it then pays.
    pays_load: bool = False
    load_s: float = 0.0


@contextmanager
def _charged() -> Iterator[_Charge]:
    """Add the block's CPU time to the current meter, even if cancelled."""
    meter, began, charge = current_meter(), time.monotonic(), _Charge()
    try:
        yield charge
    finally:
        if meter is not None:
            took_s = time.monotonic() - began
            load_s = charge.load_s if charge.pays_load else 0.0
            meter.cpu_s += took_s if charge.cpu_s is None else charge.cpu_s + load_s


async def _read_usage(
    conversation: socket.socket, tag: bytes, parts: tuple[bytes, ...]
) -> Usage | None:
    """Return the usage of a child that ends, or None if it is not reported."""
    try:
        if tag != work.END:
            async with asyncio.timeout(_END_S):
                _, parts = await read_answer(conversation, 0)
    except (OSError, EOFError, OverflowError):
        return None
    return _usage_in(parts)


def _usage_in(parts: tuple[bytes, ...]) -> Usage | None:
    try:
        return Usage.parse(parts[0])
    except ValueError:
        return None


def _error_for(tag: bytes, words: str) -> Exception:
    if tag == work.REFUSAL:
        return SandboxRefusal(words)
    if tag == work.FAULT:
        return SandboxEnded(End.CRASHED, words)
    end, _, more = words.partition("\n")
    if tag == work.END and end == End.NOT_LOADED:
        return SandboxBroken(more.partition("\n")[2])
    if tag == work.END and end == End.NOT_STARTED:
        return SandboxLost(NOT_STARTED, has_begun=False)
    if tag == work.END and end == End.LOST:
        return SandboxLost("The sandboxed process was killed from outside.")
    # A child that ended without an answer has crashed, unless its end says more.
    is_limit = tag == work.END and end in (End.OUT_OF_TIME, End.OUT_OF_MEMORY)
    return SandboxEnded(End(end) if is_limit else End.CRASHED)
