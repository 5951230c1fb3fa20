"""A provider with its circuit breaker and rate limits, and calls into it.

Rate limits are concurrency, submits per minute, and pauses that the provider asked for.
"""

import asyncio
import contextlib
import inspect
import math
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import ParamSpec, TypeVar

import attrs
import structlog

from gateway.catalog.circuit_breaker import CircuitBreaker
from gateway.concurrency.awaiting import mark_read
from gateway.contracts import Clock, Closing, Probing, Provider, Validating
from gateway.domain import Endpoint, GenerationRequest, Traits
from gateway.errors import SubmitUncertain, text_of
from gateway.telemetry.redaction import Redactor
from gateway.telemetry.spans import About, Spans

Asked = ParamSpec("Asked")
Value = TypeVar("Value")

# Timeout of a provider's `close`.
CLOSE_S = 10.0
_MAX_TEXT_CHARS = 500
# Characters of an error's text that are redacted before the final cut.
_MAX_READ_CHARS = 20_000
_MINUTE_S = 60.0
_log = structlog.get_logger()


class Pace:
    """Limits one provider's generations and submits to its traits."""

    def __init__(self, traits: Traits, now: Clock, slots: int) -> None:
        self._now = now
        self._traits = traits
        self._default_slots = slots
        self._slots: float = 0
        self._per_minute: float = 0
        self.share(nodes=1, rank=0)
        self._running = 0
        self._submits: deque[float] = deque()
        # When the pause that the provider asked for ends, in Unix seconds.
        self.paused_until = 0.0

    def share(self, *, nodes: int, rank: int) -> None:
        """Set this node's share of the vendor's limits; `rank` counts the nodes from 0.

        The shares add up to the limits, so if there are more nodes than slots, some nodes have
        none and leave the tasks to the others.
        """
        most = self._traits.max_concurrency
        working = min(nodes, most) if most else nodes
        self._slots = _part_of(most, working, rank) if most else self._default_slots
        per_minute = self._traits.submits_per_minute
        self._per_minute = _part_of(per_minute, working, rank) if per_minute else math.inf

    @contextlib.contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot for one generation, from before its submit until its end."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    @property
    def is_busy(self) -> bool:
        """Whether any generation is running."""
        return self._running > 0

    def submitted(self) -> None:
        """Count one submit, if the vendor limits them."""
        if self._per_minute < math.inf:
            self._submits.append(self._now())

    def pause(self, seconds: float) -> None:
        """Hold back submits for some seconds, at the provider's request."""
        self.paused_until = max(self.paused_until, self._now() + seconds)

    def wait_s(self) -> float:
        """Return the seconds until the next submit; infinite while all slots are taken."""
        if self._running >= self._slots or self._per_minute == 0:
            return math.inf
        next_at = self.paused_until
        if self._count_recent() >= self._per_minute:
            next_at = max(next_at, self._submits[0] + _MINUTE_S)
        return max(next_at - self._now(), 0.0)

    def free_submits(self) -> int:
        """Return how many submits may start now."""
        if self.wait_s() > 0:
            return 0
        # `wait_s` has just dropped older submits.
        return int(min(self._slots - self._running, self._per_minute - len(self._submits)))

    def _count_recent(self) -> int:
        while self._submits and self._submits[0] <= self._now() - _MINUTE_S:
            self._submits.popleft()
        return len(self._submits)


def _part_of(whole: int, nodes: int, rank: int) -> int:
    """Return a node's share; shares differ by one at most."""
    return 0 if rank >= nodes else whole // nodes + (rank < whole % nodes)


@attrs.define
class Upstream:
    """One provider of one plugin."""

    provider: Provider
    plugin: str
    traits: Traits
    circuit: CircuitBreaker
    pace: Pace
    redactor: Redactor = attrs.field(factory=Redactor)
    # Grace period of a cancelled call, in seconds.
    stop_s: float = 5.0
    # When an operator last requested a health check, in Unix seconds.
    tried_at: float = float("-inf")
    spans: Spans = attrs.field(factory=Spans)
    # The provider, if it validates requests before payment. Cached, because `isinstance` with a
    # protocol takes longer than most validations.
    validating: Validating | None = attrs.field(init=False)

    @validating.default
    def _find_validating(self) -> Validating | None:
        return self.provider if isinstance(self.provider, Validating) else None

    @classmethod
    def of(
        cls,
        provider: Provider,
        plugin: str,
        *,
        now: Clock,
        slots: int,
        redactor: Redactor | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> "Upstream":
        """Wrap a provider.

        `slots` is the concurrency limit if the provider's traits set none. `on_change` is called
        whenever the provider goes on sale or off sale.
        """
        traits: Traits = getattr(provider, "traits", Traits())
        circuit = CircuitBreaker(provider.name, now, on_change)
        pace = Pace(traits, now, slots)
        return cls(provider, plugin, traits, circuit, pace, redactor or Redactor())

    @property
    def wait_s(self) -> float:
        """Seconds until the next submit; infinite while it is not a matter of time."""
        return float("inf") if self.is_blocked else self.pace.wait_s()

    @property
    def free_submits(self) -> int:
        """How many submits may start now."""
        if self.is_blocked:
            return 0
        free = self.pace.free_submits()
        return min(free, 1) if self.circuit.is_on_trial else free

    @property
    def is_blocked(self) -> bool:
        """Whether no submit may start now.

        On trial, submits run one at a time, because with a bad account all of them would fail.
        """
        return self.circuit.is_open or (self.circuit.is_on_trial and self.pace.is_busy)

    @contextlib.contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot for one generation; a trial's begin and end are noted."""
        with self.pace.slot(), self.circuit.working():
            yield

    def pause_as_requested(self, wait_s: float, *, long_wait_s: float) -> None:
        """Pause submits at the vendor's request.

        A wait above `long_wait_s` takes the provider off sale: no buyer should pay for it.
        """
        self.pace.pause(wait_s)
        if wait_s > long_wait_s:
            self.circuit.trip(f"The provider asks to wait for {wait_s:.0f} s.", pause_s=wait_s)

    def error_text(self, error: Exception) -> str:
        """Return the redacted text of the provider's error, as storable UTF-8.

        Empty if the error's `__str__` raises.
        """
        # Redact before the cut: half a key would not be recognised.
        text = self.redactor.clean(text_of(error)[:_MAX_READ_CHARS])
        return text[:_MAX_TEXT_CHARS].encode(errors="replace").decode()

    async def call(
        self, call: Callable[Asked, Awaitable[Value]], *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Value:
        """Call a method of the provider through `call_plugin`, within a span."""
        if not self.spans.openers:
            return await call_plugin(self.stop_s, call, *args, **kwargs)
        method = getattr(call, "__name__", "").strip("_").removesuffix("_provider")
        about: About = {"provider": self.provider.name, "plugin": self.plugin, "call": method}
        with self.spans.around("call", about):
            return await call_plugin(self.stop_s, call, *args, **kwargs)

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Call the provider's `validate`, if it has one."""
        if self.validating is None:
            return
        if self.spans.openers:
            await self.call(_validate_provider, self.validating, request, endpoint)
            return
        # A synchronous validation is done here, without a task of its own.
        checking = call_plain(self.validating.validate, request, endpoint)
        if checking is not None:
            await self.call(lambda: checking)

    async def probe(self) -> None:
        """Call the provider's `health`, if it has one."""
        if isinstance(self.provider, Probing):
            await self.call(self.provider.health)

    async def close(self, *, timeout_s: float = CLOSE_S) -> None:
        """Call the provider's `close`, sync or async; errors are logged."""
        if not isinstance(self.provider, Closing):
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self.call(_close_provider, self.provider)
        except Exception:  # noqa: BLE001 - the other providers are still closed
            _log.exception("provider.close_failed", provider=self.provider.name)


async def _validate_provider(
    provider: Validating, request: GenerationRequest, endpoint: Endpoint
) -> None:
    checking = provider.validate(request, endpoint)
    if checking is not None:
        await checking


async def _close_provider(provider: Closing) -> None:
    closing: object = provider.close()
    if inspect.isawaitable(closing):
        await closing


async def call_plugin(
    stop_s: float,
    call: Callable[Asked, Awaitable[Value]],
    *args: Asked.args,
    **kwargs: Asked.kwargs,
) -> Value:
    """Run a plugin call in its own task; re-raises any `Exception` from the plugin.

    Raises `SubmitUncertain` if the plugin cancels itself or raises another `BaseException`. If the
    caller is cancelled, so is the plugin. The caller waits up to `stop_s` seconds for it to end.
    """
    work = asyncio.create_task(_contain(call, *args, **kwargs), name="plugin")
    try:
        await asyncio.wait({work})
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.wait({work}, timeout=stop_s)
        if not work.done():
            _log.error("provider.does_not_stop", asked=getattr(call, "__qualname__", ""))
        work.add_done_callback(mark_read)
        raise
    if work.cancelled():
        raise SubmitUncertain("the provider let a cancellation out")
    return work.result()


def call_plain(call: Callable[Asked, Value], *args: Asked.args, **kwargs: Asked.kwargs) -> Value:
    """Call a synchronous function of a plugin; re-raises any `Exception` from it.

    Raises `SubmitUncertain` for a cancellation or another `BaseException`.
    """
    try:
        return call(*args, **kwargs)
    except Exception:
        raise
    except BaseException as error:
        raise SubmitUncertain(f"the provider let out {type(error).__name__}") from error


async def _contain(
    call: Callable[Asked, Awaitable[Value]], *args: Asked.args, **kwargs: Asked.kwargs
) -> Value:
    """Call the plugin; turn an exception that would exit the process into `SubmitUncertain`."""
    try:
        return await call(*args, **kwargs)
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise SubmitUncertain(f"the provider let out {type(error).__name__}") from error


def place_in(error: BaseException, module: str) -> str:
    """Return `file:line` of the plugin's innermost frame in an error's traceback.

    `module` is any module of the plugin's package. Without a frame of the plugin, returns the
    innermost frame; without a traceback, an empty string.
    """
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    root = module.partition(".")[0]
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return ""
    own = [
        (frame, line)
        for frame, line in frames
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == root
    ]
    frame, line = (own or frames)[-1]
    return f"{frame.f_code.co_filename}:{line}"
