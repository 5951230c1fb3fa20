"""Numbered schema files. Each is applied once, in order, between BEGIN and COMMIT.

A file that was released is never changed, comments included: a change is a new file.
"""

import sqlite3
from importlib import resources

from gateway.errors import SettingsError


def migrations() -> list[tuple[int, str]]:
    """Return (number, SQL) of every migration, in order."""
    files = [file for file in resources.files(__package__).iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files)


def migrate(db: sqlite3.Connection) -> None:
    """Bring the schema up to date; `user_version` is the number of the newest applied file.

    Raises `SettingsError` for a database that a newer gateway has written.
    """
    current: int = db.execute("PRAGMA user_version").fetchone()[0]
    known = migrations()
    if current > known[-1][0]:
        raise SettingsError(
            f"The database is of version {current}, but this gateway knows only version "
            f"{known[-1][0]}. Install the newer gateway, or name another GATEWAY_DATA_DIR."
        )
    for number, sql in known:
        if number > current:
            db.executescript(f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version = {number};\nCOMMIT;")
