"""Scale to zero: ends an idle process, once nothing is pending.

The host starts it again at the next connection (docs/scale-to-zero.md).
"""

from collections.abc import Callable, Sequence

import attrs
import structlog

from gateway import hookimpl
from gateway.contracts.parts import Part
from gateway.running.facts_of_parts import find_pending
from gateway.running.gateway import Gateway
from gateway_idle.settings import IdleSettings, idle_s_of

# Between two checks. Only after the idle time do they ask the parts.
_EVERY_S = 5.0
_log = structlog.get_logger()


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define GATEWAY_EXIT_WHEN_IDLE."""
    register("", IdleSettings)


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Watch for idleness if the operator wants that."""
    idle_s = idle_s_of(gateway.settings)
    if idle_s is None:
        return
    watch = IdleWatch(gateway, idle_s)
    gateway.keep(watch)
    register(Part(name="idle", work=watch.check, every_s=_EVERY_S, drain=watch.check_end))


@attrs.define(eq=False, repr=False)
class IdleWatch:
    """Ends one gateway when it is idle."""

    _gateway: Gateway
    _idle_s: float
    # The last reasons to stay that were logged.
    _stays: Sequence[str] = attrs.field(default=(), init=False)
    # As of the decision to end.
    _begun: int = attrs.field(default=0, init=False)

    async def check(self) -> None:
        """End the process if no request has used it for long and nothing is pending."""
        lifecycle, requests = self._gateway.lifecycle, self._gateway.requests
        if not lifecycle.warmed.is_set() or lifecycle.asleep.is_set():
            return
        idle_s = requests.idle_s
        if idle_s < self._idle_s:
            self._stays = ()
            return
        begun = requests.begun
        if reasons := await find_pending(self._gateway):
            self._log_reasons(reasons, idle_s)
        # A request may have come while the parts answered.
        elif requests.begun == begun and not requests.open:
            _log.info("idle.ends", idle_s=round(idle_s))
            self._begun = begun
            lifecycle.sleep()

    async def check_end(self) -> None:
        """Make the host start the gateway again if a request came while its socket closed.

        The parts before this one have drained: a sale of the last moment has settled, and its task
        has ended or was given back. Work without a request since then is another node's.
        """
        lifecycle, requests = self._gateway.lifecycle, self._gateway.requests
        if not lifecycle.asleep.is_set() or requests.begun == self._begun:
            return
        if reasons := await find_pending(self._gateway):
            self._gateway.store.fitness.mark_unfit(
                f"Work came while the gateway went to sleep ({', '.join(reasons)}). It must be "
                "started again, which a host with restart on failure does."
            )

    def _log_reasons(self, reasons: Sequence[str], idle_s: float) -> None:
        if reasons != self._stays:
            _log.info("idle.stays", pending=reasons, idle_s=round(idle_s))
            self._stays = reasons
