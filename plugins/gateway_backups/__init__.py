"""Copies of the database in a bucket or folder: made on schedule, thinned out, tried, restored.

Copying itself is in `gateway_backups.sqlite` and `gateway.store.sqlite.upgrade`.
"""

from collections.abc import Callable

from gateway import hookimpl
from gateway.contracts.parts import Part
from gateway.running.gateway import Gateway


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Make copies, if a place for them is set."""
    if not gateway.settings.backup_url:
        return
    from gateway_backups.schedule import Backups  # noqa: PLC0415 - most gateways make no copies

    backups = Backups(settings=gateway.settings, store=gateway.store, now=gateway.now)
    gateway.keep(backups)
    register(Part(name="backups", run=backups.repeat_forever))
