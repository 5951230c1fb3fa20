"""The operator's side: pages, JSON API, commands, alarms, books and metrics.

The gateway sells without it. The first request to `/admin` imports the pages; alarms are imported
after the gateway's first response.
"""

import asyncio
import importlib
from collections.abc import Callable

from gateway import hookimpl
from gateway.concurrency.late_imports import import_in_turn
from gateway.contracts.parts import Discovery, Mount, Part
from gateway.running.gateway import Gateway
from gateway_operator.settings import OperatorSettings, operator_settings_of
from gateway_operator.state import Operator

# Imported after the first response, but before the garbage collector freezes loaded objects.
_LATE = ("gateway_operator.alarms.state_watch", "gateway_operator.running")


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define the settings of the login, metrics and alarms."""
    register("", OperatorSettings)


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Register the pages, alarms and metrics."""
    operator = Operator(gateway)
    gateway.keep(operator)
    register(
        Part(
            name="operator",
            warm=lambda: _warm_up(operator),
            close=operator.close,
            pending=operator.find_pending,
            mounts=[Mount(paths=["/admin/*"], blueprint="gateway_operator.pages:make_blueprint")],
            discovery=Discovery(closed_paths=["/admin"]),
        )
    )
    register(Part(name="state-watch", run=lambda: _watch_state(gateway)))
    register(
        Part(
            name="alarms",
            run=lambda: _watch_alarms(gateway, operator),
            drain=lambda: _pause_heartbeat(gateway, operator),
            # A last heartbeat, then the pause; each has ten seconds.
            drain_s=25.0,
        )
    )
    if metrics_bind := operator_settings_of(gateway.settings).metrics_bind:
        register(_make_metrics(gateway, metrics_bind))


async def _warm_up(operator: Operator) -> None:
    await operator.password.make_first()
    for name in _LATE:
        await asyncio.to_thread(import_in_turn, name)


async def _watch_state(gateway: Gateway) -> None:
    module = importlib.import_module("gateway_operator.alarms.state_watch")
    await module.StateWatch(gateway).run()


async def _watch_alarms(gateway: Gateway, operator: Operator) -> None:
    operator.alarms.is_mine = gateway.lifecycle.leads
    await operator.alarms.run()


async def _pause_heartbeat(gateway: Gateway, operator: Operator) -> None:
    if gateway.lifecycle.asleep.is_set():
        await operator.alarms.sleep()


def _make_metrics(gateway: Gateway, bind: str) -> Part:
    # prometheus_client takes 10 MB, and most gateways run without it.
    module = importlib.import_module("gateway_operator.metrics.server")
    server = module.MetricsServer(gateway, bind)
    return Part(name="metrics", start=server.start, close=server.close)
