"""PgBouncer before a PostgreSQL of the tests, from Debian's package `pgbouncer`."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

# Debian installs it in a folder that is only on root's path.
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_STARTS_S = 30.0
_CONFIGURATION = """
[databases]
* = host={server} user=gateway
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
listen_port = 6432
auth_type = any
pool_mode = {mode}
server_round_robin = {by_turns:d}
"""


@contextlib.contextmanager
def pgbouncer(database_url: str, mode: str, *, by_turns: bool) -> Iterator[str]:
    """Run it; yields the database's URL through it.

    `mode` is how long a client keeps a session: session, transaction or statement. Sessions are
    used in turn, or the most recently used one first.
    """
    assert PROGRAM is not None
    address, _, server = database_url.partition("?host=")
    # A socket's path may have 107 bytes, so the folder's is short.
    with tempfile.TemporaryDirectory(prefix="gw-pgb-") as path:
        folder = Path(path)
        values = {"server": server, "folder": folder, "mode": mode, "by_turns": by_turns}
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(_CONFIGURATION.format(**values))
        # It refuses to run as root. A gateway in this process may have closed its files to others.
        user = "postgres" if os.geteuid() == 0 else None
        if user is not None:
            shutil.chown(folder, user)
            shutil.chown(configuration, user)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [PROGRAM, str(configuration)], stdout=log, stderr=log, user=user
            )
        try:
            url = f"{address}?host={folder}&port=6432"
            _wait_until_up(process, url)
            yield url
        finally:
            process.kill()
            process.wait()


def _wait_until_up(process: subprocess.Popen[bytes], url: str) -> None:
    give_up_at = time.monotonic() + _STARTS_S
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            assert process.poll() is None, "pgbouncer has ended at its start"
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.02)
        else:
            return
