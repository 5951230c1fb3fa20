"""The data folder: whose it is, and one gateway at a time."""

import fcntl
from pathlib import Path
from typing import TextIO

from gateway.contracts import Store
from gateway.errors import SettingsError
from gateway.settings import Settings


def existing_database(settings: Settings) -> Path:
    """Return the path of the gateway's database; raises `SettingsError` where there is none."""
    path = settings.data_dir / "gateway.db"
    if not path.exists():
        raise SettingsError(
            f"There is no database in {settings.data_dir}. Name the gateway's folder: "
            "GATEWAY_DATA_DIR=/data"
        )
    return path


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


async def check_network(settings: Settings, store: Store) -> None:
    """Refuse the data of another network: its nonces and claims mean nothing here."""
    known = await store.meta("network", lambda: settings.network)
    if known != settings.network:
        raise SettingsError(
            f"The data in {settings.data_dir} is of network {known}, GATEWAY_NETWORK is "
            f"{settings.network}. Give that a folder of its own: GATEWAY_DATA_DIR=/data2"
        )
