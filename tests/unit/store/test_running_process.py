"""The note in the lock file by which `gateway reload` finds the running gateway."""

import contextlib
import json
import os
import signal
import threading

import pytest

from gateway.errors import SettingsError
from gateway.settings import Settings
from gateway.store.data_folder import lock_data
from gateway.store.running_process import RunningProcess, ask_to_reload


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(wallet="0x" + "b2" * 20, data_dir=tmp_path)


@pytest.fixture
def asked(monkeypatch):
    """Collect signals instead of sending them."""
    found = []
    monkeypatch.setattr(os, "kill", lambda *given: found.append(given))
    return found


def test_the_process_is_asked_and_its_answer_returned(settings, asked):
    with contextlib.closing(lock_data(settings)) as lock:
        process = RunningProcess(lock)
        process.note_start()
        # One is on its way.
        process.note_begin()

        def reload() -> None:
            process.note_reload(["acme: too early."], is_whole=True)
            process.note_begin()
            process.note_reload(["acme: added a."], is_whole=True)
            # Another one begins at once.
            process.note_begin()

        answer = threading.Timer(0.05, reload)
        answer.start()
        done = ask_to_reload(settings, timeout_s=60.0)
        answer.join()
    assert asked == [(os.getpid(), signal.SIGHUP)]
    assert (done.sentences, done.is_whole) == (["acme: added a."], True)


def test_a_gateway_that_does_not_answer_is_named(settings, asked):
    with contextlib.closing(lock_data(settings)) as lock:
        RunningProcess(lock).note_start()
        with pytest.raises(SettingsError, match="has not reloaded within"):
            ask_to_reload(settings, timeout_s=0.01)


def test_without_a_running_gateway_nothing_is_signalled(settings, asked):
    with pytest.raises(SettingsError, match="No gateway runs with the data folder"):
        ask_to_reload(settings, timeout_s=0.01)
    with contextlib.closing(lock_data(settings)) as lock:
        RunningProcess(lock).note_start()
    # The note of a process that has ended.
    with pytest.raises(SettingsError, match="No gateway runs with the data folder"):
        ask_to_reload(settings, timeout_s=0.01)
    assert asked == []


@pytest.mark.parametrize("pid", [0, -1, "1", None, 1.5])
def test_a_note_that_names_no_process_is_not_followed(settings, asked, pid):
    with contextlib.closing(lock_data(settings)) as lock:
        lock.write(json.dumps({"pid": pid}) + "\n")
        lock.flush()
        with pytest.raises(SettingsError, match="just starting, or another command works there"):
            ask_to_reload(settings, timeout_s=0.01)
    assert asked == []


def test_another_command_has_the_lock_without_a_note(settings, asked):
    with contextlib.closing(lock_data(settings)) as lock:
        RunningProcess(lock).note_start()
    # A later holder, such as a restore, removes the note.
    with (
        contextlib.closing(lock_data(settings)),
        pytest.raises(SettingsError, match="another command works there"),
    ):
        ask_to_reload(settings, timeout_s=0.01)
    assert asked == []


def test_a_second_gateway_does_not_remove_the_note(settings, asked):
    with contextlib.closing(lock_data(settings)) as lock:
        RunningProcess(lock).note_start()
        with pytest.raises(SettingsError, match="Another gateway uses"):
            lock_data(settings)
        with pytest.raises(SettingsError, match="has not reloaded"):
            ask_to_reload(settings, timeout_s=0.01)
    assert asked == [(os.getpid(), signal.SIGHUP)]
