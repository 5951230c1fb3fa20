"""The lock on the data folder: one gateway at a time."""

import fcntl
from typing import TextIO

from gateway.errors import SettingsError
from gateway.settings import Settings


def lock_data(settings: Settings) -> TextIO:
    """Keep a second gateway off the same data: it would take this one's tasks for a dead one's."""
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        lock = (settings.data_dir / "gateway.lock").open("w")
    except OSError as error:
        raise SettingsError(
            f"The folder {settings.data_dir} cannot be written ({error.strerror}). "
            "Name another: GATEWAY_DATA_DIR=/data"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise SettingsError(
            f"Another gateway runs on {settings.data_dir}. Stop it, or give this one a folder of "
            "its own: GATEWAY_DATA_DIR=/data2"
        ) from None
    return lock
