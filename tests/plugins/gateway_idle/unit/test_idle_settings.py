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


@pytest.mark.parametrize("role", ["worker", "signer", "web", "web,worker"])
def test_a_machine_without_all_roles_must_not_sleep(role):
    with pytest.raises(SettingsError, match="without all roles"):
        idle_s_of(Settings(role=role).changed(exit_when_idle="10m"))


def test_a_machine_that_names_all_roles_may_sleep():
    settings = Settings(role="web,worker,signer").changed(exit_when_idle="10m")
    assert idle_s_of(settings) == 600.0
