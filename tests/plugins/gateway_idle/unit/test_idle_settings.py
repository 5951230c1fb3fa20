"""GATEWAY_EXIT_WHEN_IDLE."""

import pytest

from gateway import Settings
from gateway.errors import SettingsError
from gateway_idle.settings import idle_s_of


@pytest.mark.parametrize(("text", "seconds"), [("", None), ("10m", 600.0), ("2h", 7_200.0)])
def test_a_time_is_minutes_or_hours(text, seconds):
    assert idle_s_of(Settings().changed(exit_when_idle=text)) == seconds


@pytest.mark.parametrize("text", ["10", "0m", "30s", "1.5h", "-1m", "soon"])
def test_another_value_is_refused(text):
    with pytest.raises(SettingsError, match="GATEWAY_EXIT_WHEN_IDLE"):
        idle_s_of(Settings().changed(exit_when_idle=text))


def test_a_machine_that_no_request_wakes_must_not_sleep():
    settings = Settings(role="worker").changed(exit_when_idle="10m")
    with pytest.raises(SettingsError, match="without the role web"):
        idle_s_of(settings)
    assert idle_s_of(Settings(role="web").changed(exit_when_idle="10m")) == 600.0
