"""The sandbox: one function, called in a fresh, limited child process each time."""

import asyncio

import attrs

from gateway.sandbox import frames, pieces
from gateway.sandbox.errors import End, SandboxEnded, SandboxLost, SandboxRefusal
from gateway.sandbox.limits import SandboxLimits
from gateway.sandbox.process import NOT_STARTED, Running

_START_S = 25.0  # that loading the modules may take on a busy machine


def _turns(sandbox: "Sandbox") -> asyncio.Semaphore:
    return asyncio.Semaphore(sandbox.limits.children)


@attrs.define(kw_only=True, eq=False)
class Sandbox:
    """Calls a function on a stranger's bytes where it can do no harm.

    A warmed process, which has imported the function, forks a child for each call: 1 ms. It
    starts with the first call and leaves by itself when idle. Neither has the gateway's
    environment; a child can open no file and no socket, start no process, reach no other, and dies
    with whoever waits for it.
    """

    function: str
    """`"package.module:name"`. Takes `bytes` and `str`, returns `bytes`, and may raise
    `gateway.SandboxRefusal`. The `__init__` of the packages around it, and of `gateway`, runs over
    there only if something in it is used: a module of its own, which takes the refusal from
    `gateway.sandbox.errors`, keeps the warmed process at 15 MB and what it imports itself."""

    warm: tuple[str, ...] = ()
    """What to load before the fork, in this order: `"module"` is imported, of `"module:name"`
    the function is also called. A child can import nothing that is not loaded by then."""

    limits: SandboxLimits = attrs.field(factory=SandboxLimits)
    _running: Running | None = attrs.field(default=None, init=False)
    _starting: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _free: asyncio.Semaphore = attrs.field(
        default=attrs.Factory(_turns, takes_self=True), init=False
    )

    async def call(self, *arguments: bytes | str) -> bytes:
        """Return what the function returns in a child of its own; cancelling kills the child.

        Raises `SandboxRefusal` where the function did, `SandboxEnded` where the child met a limit
        or crashed, and `SandboxLost` where no child is to be had or somebody killed it.
        """
        return b"".join(await self.call_parts(*arguments))

    async def call_parts(self, *arguments: bytes | str) -> tuple[bytes, ...]:
        """Do the same for a function that returns a list of `bytes`: nothing large is copied."""
        async with self._free:
            try:
                return await self._ask(arguments)
            except ConnectionError:
                # It left for want of work just now, or was killed; a call has no effects.
                return await self._ask_again(arguments)

    async def start(self) -> None:
        """Start the warmed process ahead of the first call, which then need not wait for it."""
        await self._started()

    def close(self) -> None:
        """End the warmed process with all its children; the next call starts another."""
        if self._running is not None:
            self._running.close()
            self._running = None

    async def _started(self) -> Running:
        async with self._starting:
            if self._running is None or not self._running.is_alive:
                self.close()
                self._running = await asyncio.to_thread(
                    Running.start, self.function, self.warm, self.limits
                )
            return self._running

    async def _ask_again(self, arguments: tuple[bytes | str, ...]) -> tuple[bytes, ...]:
        try:
            return await self._ask(arguments)
        except ConnectionError as error:
            raise SandboxLost(NOT_STARTED) from error

    async def _ask(self, arguments: tuple[bytes | str, ...]) -> tuple[bytes, ...]:
        """Ask once; raises `ConnectionError` where the warmed process is gone."""
        running = await self._started()
        try:
            async with asyncio.timeout(_START_S + self.limits.wall_s):
                with running.conversation() as conversation:
                    await pieces.send_call(conversation, arguments)
                    tag, parts = await pieces.read_answer(conversation, self.limits.answer_bytes)
        except TimeoutError as error:
            running.close()
            raise SandboxLost("The sandboxed process does not answer.") from error
        except (OSError, EOFError) as error:
            running.close()
            raise ConnectionError("The warmed process is gone.") from error
        except OverflowError as error:
            raise SandboxEnded(End.CRASHED, str(error)) from None
        if tag != frames.ANSWER:
            raise _cause(tag, parts[0].decode(errors="replace"))
        return parts


def _cause(tag: bytes, words: str) -> Exception:
    """Return what the child, or the warmed process after its end, says in place of an answer."""
    if tag == frames.REFUSAL:
        return SandboxRefusal(words)
    if tag == frames.FAULT:
        return SandboxEnded(End.CRASHED, words)
    if tag == frames.END and words in (End.OUT_OF_TIME, End.OUT_OF_MEMORY, End.CRASHED):
        return SandboxEnded(End(words))
    return SandboxLost("The sandboxed process was killed from outside.")
