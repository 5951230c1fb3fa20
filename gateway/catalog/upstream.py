"""A provider with its capabilities, circuit breaker and rate limits."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import attrs
import structlog

from gateway.catalog.calls import call_plain, call_plugin, error_text
from gateway.catalog.circuit_breaker import CircuitBreaker
from gateway.catalog.pace import Pace
from gateway.contracts import Clock, Closing, Probing, Provider, Validating
from gateway.domain import Endpoint, GenerationRequest, Traits
from gateway.telemetry.redaction import Redactor
from gateway.telemetry.spans import About, Spans

Asked = ParamSpec("Asked")
Value = TypeVar("Value")

# Timeout of a provider's `close`.
CLOSE_S = 10.0
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
        return float("inf") if self._is_blocked else self.pace.wait_s()

    @property
    def free_submits(self) -> int:
        """How many submits may start now."""
        if self._is_blocked:
            return 0
        free = self.pace.free_submits()
        return min(free, 1) if self.circuit.is_on_trial else free

    @property
    def _is_blocked(self) -> bool:
        """Whether no submit may start now.

        On trial, submits run one at a time, because with a bad account all of them would fail.
        """
        return self.circuit.is_open or (self.circuit.is_on_trial and self.pace.is_busy)

    def pause_as_requested(self, wait_s: float, *, long_wait_s: float) -> None:
        """Pause submits at the vendor's request.

        A wait above `long_wait_s` takes the provider off sale: no buyer should pay for it.
        """
        self.pace.pause(wait_s)
        if wait_s > long_wait_s:
            self.circuit.trip(f"The provider asks to wait for {wait_s:.0f} s.", pause_s=wait_s)

    def error_text(self, error: Exception) -> str:
        """Return the redacted text of the provider's error."""
        return error_text(error, self.redactor)

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
            await self.call(_wait_for, checking)

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


async def _wait_for(checking: Awaitable[None]) -> None:
    await checking


async def _close_provider(provider: Closing) -> None:
    closing: object = provider.close()
    if inspect.isawaitable(closing):
        await closing
