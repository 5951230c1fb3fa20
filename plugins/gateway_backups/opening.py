"""Restores a copy before the gateway opens its database, if GATEWAY_RESTORE names one."""

import time

from gateway.settings import Settings
from gateway_backups.settings import backup_settings_of
from gateway_backups.sqlite import forget_restored_by


def before_open(settings: Settings) -> None:
    """Restore the copy at the first start with this setting."""
    if not backup_settings_of(settings).restore:
        forget_restored_by(settings)
        return
    from gateway_backups.restoring import restore_once  # noqa: PLC0415 - most starts restore nothing

    restore_once(settings, now=time.time())
