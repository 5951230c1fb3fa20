"""The lock of the data folder."""

import threading
import time

import pytest

from gateway.errors import SettingsError
from gateway.settings import Settings
from gateway.store.data_folder import lock_data


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(wallet="0x" + "b2" * 20, data_dir=tmp_path)


def test_a_second_gateway_is_refused(settings):
    with lock_data(settings), pytest.raises(SettingsError, match="Another gateway uses"):
        lock_data(settings)


def test_a_lock_that_is_released_a_moment_later_is_waited_for(settings):
    """A child that a killed gateway was starting holds it until it has started."""
    held = lock_data(settings)

    def release() -> None:
        time.sleep(0.2)
        held.close()

    child = threading.Thread(target=release)
    child.start()
    lock_data(settings).close()
    child.join()
