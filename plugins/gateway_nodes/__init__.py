"""Several nodes: PostgreSQL, leader election, rate limits in Redis, migration from SQLite.

A gateway on SQLite imports only this file.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway import hookimpl

if TYPE_CHECKING:
    from gateway.contracts import Clock
    from gateway.contracts.parts import Part
    from gateway.running.gateway import Gateway
    from gateway.running.rate_limits import RateLimits
    from gateway.settings import Settings
    from gateway.store import SqlStore


def before_open(settings: "Settings") -> None:
    """Refuse to start on PostgreSQL while the data folder's SQLite has unmigrated sales."""
    if settings.database_url:
        from gateway_nodes.left_behind import refuse_left_behind  # noqa: PLC0415

        refuse_left_behind(settings)


def open_store(settings: "Settings", name: str | None) -> "SqlStore":
    """Return the PostgreSQL store; `name` is its application name, by default the node's name."""
    from gateway_nodes.postgres.store import open_postgres  # noqa: PLC0415 - psycopg costs memory

    return open_postgres(settings, name)


def open_limits(settings: "Settings", clock: "Clock", secret: str) -> "RateLimits":
    """Return rate limits counted in Redis; `secret` is the installation's."""
    from gateway_nodes.rate_limits import SharedRateLimits  # noqa: PLC0415 - so does Redis' client

    return SharedRateLimits(settings, clock, secret)


@hookimpl
def register_parts(register: "Callable[[Part], None]", gateway: "Gateway") -> None:
    """Share provider states between nodes, and check the shared rate limits."""
    if gateway.settings.limits_url:
        from gateway_nodes.rate_limits import make_check  # noqa: PLC0415

        register(make_check(gateway.limits))
    if gateway.store.nodes.has_others:
        from gateway_nodes.nodes import share_keys  # noqa: PLC0415
        from gateway_nodes.shared_states import make_part  # noqa: PLC0415

        share_keys(gateway.store.nodes, gateway.settlements.settler)
        register(make_part(gateway))
