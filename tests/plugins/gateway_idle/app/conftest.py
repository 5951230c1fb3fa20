"""A gateway that ends after ten minutes without use, by a clock that the test advances."""

import contextlib

import attrs
import pytest
import structlog

from gateway_idle import IdleWatch
from tests.conftest import Running, running

IDLE_S = 600.0


@attrs.define
class Idler:
    """A gateway, its clock, and the log lines since its start."""

    gateway: Running
    clock: object
    lines: list

    async def pass_time(self, seconds: float = IDLE_S + 1) -> bool:
        """Let time pass and check once; return whether the process is to end."""
        self.clock.offset_s += seconds
        return await self.check()

    async def check(self) -> bool:
        await self.gateway.services.find(IdleWatch).check()
        return self.gateway.services.lifecycle.asleep.is_set()

    def stays_for(self) -> list:
        """Return the logged reasons to stay, one list a line."""
        return [line["pending"] for line in self.lines if line["event"] == "idle.stays"]


def follow(gateway: Running, clock) -> None:
    """Measure idleness by the clock of the test, from now on."""
    requests = gateway.services.requests
    requests.clock, requests.used_at = clock, clock()


@pytest.fixture
def idling(provider, clock, monkeypatch):
    """Return a function that starts a gateway with settings; by default without the operator's."""

    # Only the test checks.
    monkeypatch.setattr("gateway_idle._EVERY_S", 86_400.0)

    @contextlib.asynccontextmanager
    async def start(settings, *, without=("gateway_operator",), **options):
        chosen = settings.changed(exit_when_idle="10m", plugins_disabled=without)
        with structlog.testing.capture_logs() as lines:
            async with running(chosen, provider, now=clock, **options) as gateway:
                await gateway.services.lifecycle.warmed.wait()
                follow(gateway, clock)
                yield Idler(gateway, clock, lines)

    return start
