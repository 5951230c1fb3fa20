"""SQLite databases with the current schema, copied from one migrated once per process."""

import asyncio
import functools
import tempfile
import threading
from pathlib import Path


def put_database(path: Path) -> Path:
    """Put an empty migrated database at `path`, unless a file exists there; return the path.

    A store that opens it acts as at its second start: it finds nothing to migrate.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(_migrated())
    return path


@functools.cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "gateway.db")
        # The caller may run an event loop in its own thread.
        migration = threading.Thread(target=lambda: asyncio.run(_migrate(path)))
        migration.start()
        migration.join()
        return path.read_bytes()


async def _migrate(path: Path) -> None:
    from gateway.store.sqlite.store import SqliteStore

    async with SqliteStore(path):
        pass
