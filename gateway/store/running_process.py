"""The note of the running gateway in its lock file: its process, and how its last reload went.

Only the process that holds the lock writes it. `gateway reload` finds the process by it.
"""

import fcntl
import json
import os
import signal
import time
from collections.abc import Sequence
from typing import Any, TextIO

import attrs

from gateway.errors import SettingsError
from gateway.settings import Settings
from gateway.store.data_folder import LOCK

_POLL_S = 0.05
_MAX_NOTE_CHARS = 100_000


@attrs.define(eq=False, repr=False)
class RunningProcess:
    """The note about this process, in the lock file that it holds."""

    _lock: TextIO
    _begun: int = 0
    _reloads: int = 0
    # Of the last reload that ended.
    _outcome: dict[str, Any] = attrs.field(factory=lambda: _outcome_of([], is_whole=True))

    def note_start(self) -> None:
        """Note that this process can reload."""
        self._write()

    def note_begin(self) -> None:
        """Note that a reload begins."""
        self._begun += 1
        self._write()

    def note_reload(self, sentences: Sequence[str], *, is_whole: bool) -> None:
        """Note how a reload went."""
        self._reloads = self._begun
        self._outcome = _outcome_of(sentences, is_whole=is_whole)
        self._write()

    def _write(self) -> None:
        note = {"pid": os.getpid(), "begun": self._begun, "reloads": self._reloads}
        text = json.dumps({**note, **self._outcome})
        self._lock.truncate(0)
        self._lock.write(f"{text}\n")
        self._lock.flush()


def _outcome_of(sentences: Sequence[str], *, is_whole: bool) -> dict[str, Any]:
    return {"sentences": list(sentences), "is_whole": is_whole}


@attrs.frozen(eq=False, repr=False)
class ReloadNote:
    """What a running gateway notes about itself."""

    pid: int
    # How many reloads have begun, and ended. The rest is of the last one that ended.
    begun: int = 0
    reloads: int = 0
    sentences: Sequence[str] = ()
    is_whole: bool = True


def ask_to_reload(settings: Settings, *, timeout_s: float) -> ReloadNote:
    """Have the gateway of this data folder reload, and return how it went.

    Call this as the folder's owner, who can signal no process of another user. Raises
    `SettingsError` if none runs here, or if it does not answer within `timeout_s`.
    """
    before = _read(settings)
    if before is None:
        raise SettingsError(
            f"The gateway with the data folder {settings.data_dir} is just starting, or another "
            "command works there. Try again."
        )
    try:
        os.kill(before.pid, signal.SIGHUP)
    except ProcessLookupError:
        raise SettingsError(
            f"Process {before.pid} is not on this machine. Run this where the gateway runs: in a "
            "container, as `docker compose exec gateway gateway reload`."
        ) from None
    except PermissionError:
        raise SettingsError(
            f"Process {before.pid} belongs to another user. Run this as the gateway's user."
        ) from None
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        time.sleep(_POLL_S)
        after = _read(settings)
        # One that had begun already may have read the files before their change.
        if after is not None and (after.pid != before.pid or after.reloads > before.begun):
            return after
    raise SettingsError(
        f"The gateway has not reloaded within {timeout_s:g} seconds. Its log has the reason."
    )


def _read(settings: Settings) -> ReloadNote | None:
    """Return the note; None while it is being written, or if the holder of the lock has none."""
    path, text = settings.data_dir / LOCK, None
    if path.exists():
        with path.open() as file:
            text = None if _is_free(file) else file.read(_MAX_NOTE_CHARS)
    if text is None:
        raise SettingsError(
            f"No gateway runs with the data folder {settings.data_dir}. Set its folder: "
            "GATEWAY_DATA_DIR=/data"
        )
    try:
        note = ReloadNote(**json.loads(text)) if text.endswith("\n") else None
    except (ValueError, TypeError):
        return None
    # Other numbers would name a group of processes, or all of them.
    is_process = note is not None and isinstance(note.pid, int) and note.pid > 0
    return note if is_process else None


def _is_free(file: TextIO) -> bool:
    """Whether no process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
