"""A provider as the engine sees it: what it can do, whether it works, how fast it is asked."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import attrs
import structlog

from gateway.contracts import Clock, Closing, Probing, Provider
from gateway.domain import Traits
from gateway.errors import SubmitUncertain
from gateway.plugins.circuit_breaker import CircuitBreaker
from gateway.plugins.pace import Pace
from gateway.redaction import Redactor

Asked = ParamSpec("Asked")
Value = TypeVar("Value")

_STOP_S = 5.0  # that a plugin has to end in, once told to
_CLOSE_S = 10.0  # that it has to close what it keeps open
_MAX_SENTENCE_CHARS = 500
_MAX_READ_CHARS = 20_000  # of what an error says
_log = structlog.get_logger()


@attrs.define
class Upstream:
    """One provider of one plugin."""

    provider: Provider
    plugin: str
    traits: Traits
    circuit: CircuitBreaker
    pace: Pace
    redactor: Redactor = attrs.field(factory=Redactor)

    @classmethod
    def of(
        cls,
        provider: Provider,
        plugin: str,
        *,
        now: Clock,
        places: int,
        redactor: Redactor | None = None,
    ) -> "Upstream":
        """Return the upstream of a provider; `places`: generations at once where it names none."""
        traits: Traits = getattr(provider, "traits", Traits())
        circuit, pace = CircuitBreaker(provider.name, now), Pace(traits, now, places)
        return cls(provider, plugin, traits, circuit, pace, redactor or Redactor())

    @property
    def wait_s(self) -> float:
        """Seconds until a submit may go out; infinite where that depends on something else."""
        return float("inf") if self._may_not else self.pace.wait_s()

    @property
    def room(self) -> int:
        """How many submits may go out now."""
        if self._may_not:
            return 0
        return min(self.pace.room(), 1) if self.circuit.is_on_trial else self.pace.room()

    @property
    def _may_not(self) -> bool:
        """Whether nothing is asked now; on trial one at a time, or a bad account fails them all."""
        return self.circuit.is_open or (self.circuit.is_on_trial and self.pace.is_busy)

    def sentence(self, error: Exception) -> str:
        """Return what its error says, without secrets and prompt, as text that can be stored."""
        try:
            text = str(error)[:_MAX_READ_CHARS]
        except Exception:  # noqa: BLE001 - a plugin's own error class may do anything
            return ""
        # Before it is cut: of half a key the other half would not be found.
        text = self.redactor.clean(text)
        return text[:_MAX_SENTENCE_CHARS].encode(errors="replace").decode()

    async def probe(self) -> None:
        """Raise what the provider's health says; nothing where it cannot be asked."""
        if isinstance(self.provider, Probing):
            await call_plugin(self.provider.health)

    async def close(self) -> None:
        """Let the provider end what it keeps open, whether `close` is plain or async."""
        if not isinstance(self.provider, Closing):
            return
        try:
            async with asyncio.timeout(_CLOSE_S):
                await call_plugin(_closed, self.provider)
        except Exception:  # noqa: BLE001 - the other providers' turn comes all the same
            _log.exception("provider.close_failed", provider=self.provider.name)


async def _closed(provider: Closing) -> None:
    closed: object = provider.close()
    if inspect.isawaitable(closed):
        await closed


async def call_plugin(
    call: Callable[Asked, Awaitable[Value]], *args: Asked.args, **kwargs: Asked.kwargs
) -> Value:
    """Call a plugin so that whatever it does ends with it; raises any `Exception`.

    It runs in a task of its own. A cancellation that nobody asked for is its failure, not our
    stop; who does not stop when told to is left behind.
    """
    work = asyncio.create_task(_tamed(call, *args, **kwargs), name="plugin")
    try:
        await asyncio.wait({work})
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.wait({work}, timeout=_STOP_S)
        if not work.done():
            _log.error("provider.does_not_stop", asked=getattr(call, "__qualname__", ""))
        work.add_done_callback(_forget)
        raise
    if work.cancelled():
        raise SubmitUncertain("the provider let a cancellation out")
    return work.result()


async def _tamed(
    call: Callable[Asked, Awaitable[Value]], *args: Asked.args, **kwargs: Asked.kwargs
) -> Value:
    """Call; what would end the whole process is an ordinary failure."""
    try:
        return await call(*args, **kwargs)
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise SubmitUncertain(f"the provider let out {type(error).__name__}") from error


def _forget(work: "asyncio.Task[Value]") -> None:
    """Look at what came of a task that was told to stop, or asyncio complains that nobody did."""
    if not work.cancelled():
        work.exception()
