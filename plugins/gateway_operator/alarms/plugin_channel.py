"""Sends alarms by a plugin's hook `gateway_notify`."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from gateway.catalog.upstream import call_plugin
from gateway.concurrency.threads import run_in_daemon
from gateway.contracts.parts import Alarm
from gateway_operator.alarms.carriers import LATE, Outcomes
from gateway_operator.alarms.records import AlarmMessage

# For one message, and for a cancelled call to end.
_LIMIT_S = 15.0
_STOP_S = 2.0


@attrs.define(kw_only=True)
class PluginChannel:
    """Calls a plugin's hook, a synchronous one in a thread."""

    plugin: str
    notify: Callable[[Alarm], Any]
    limit_s: float = _LIMIT_S
    # Has not ended. A thread cannot be stopped.
    _hanging: asyncio.Task[Any] | None = attrs.field(default=None, init=False)

    @property
    def channels(self) -> Sequence[str]:
        """One channel, named after the plugin."""
        return (f"plugin {self.plugin}",)

    async def carry(self, batches: Mapping[str, Sequence[AlarmMessage]]) -> Outcomes:
        """Call the hook for each message; after a failure the others wait."""
        outcomes: Outcomes = {}
        for message in batches.get(self.channels[0], ()):
            outcomes[message.id] = problem = await self._send(message.alarm)
            if problem is not None:
                break
        return outcomes

    def close(self) -> None:
        """Abandon a call that has not ended."""
        if self._hanging is not None:
            self._hanging.cancel()

    async def _send(self, alarm: Alarm) -> str | None:
        if self._hanging is not None and not self._hanging.done():
            return "Its last call has not ended."
        try:
            if inspect.iscoroutinefunction(self.notify):
                async with asyncio.timeout(self.limit_s):
                    await call_plugin(_STOP_S, self.notify, alarm)
                return None
            return await self._call_in_thread(alarm)
        except TimeoutError:
            return LATE
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            # The exception's text may contain a key of the plugin.
            return f"It failed: {type(error).__name__}."

    async def _call_in_thread(self, alarm: Alarm) -> str | None:
        call = run_in_daemon(functools.partial(self.notify, alarm), f"alarm {self.plugin}")
        self._hanging = task = asyncio.ensure_future(call)
        done, _ = await asyncio.wait({task}, timeout=self.limit_s)
        if not done:
            return LATE
        self._hanging = None
        task.result()
        return None
