"""Several machines: PostgreSQL, the lead among them, rate limits in Redis, the move from SQLite.

A gateway on SQLite imports nothing but this file.
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
    """Refuse a start that would leave sales behind in the data folder's SQLite."""
    if settings.database_url:
        from gateway_nodes.left_behind import refuse_left_behind  # noqa: PLC0415

        refuse_left_behind(settings)


def open_store(settings: "Settings", name: str | None) -> "SqlStore":
    """Return the store in a PostgreSQL; `name` is what its server shows, or None for the node's."""
    from gateway_nodes.postgres.store import open_postgres  # noqa: PLC0415 - psycopg costs memory

    return open_postgres(settings, name)


def open_limits(settings: "Settings", clock: "Clock", secret: str) -> "RateLimits":
    """Return rate limits that are counted in a Redis; `secret` is the installation's."""
    from gateway_nodes.rate_limits import SharedRateLimits  # noqa: PLC0415 - so does Redis' client

    return SharedRateLimits(settings, clock, secret)


@hookimpl
def register_parts(register: "Callable[[Part], None]", gateway: "Gateway") -> None:
    """Let nodes believe alike about providers."""
    if gateway.store.nodes.has_others:
        from gateway_nodes.shared_states import make_part  # noqa: PLC0415

        register(make_part(gateway))
