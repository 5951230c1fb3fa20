"""A PostgreSQL server for tests: a cluster that ends with the run, and a database for each test.

Debian's package `postgresql` has the programs. Without them these tests skip; if
GATEWAY_TESTS_NEED_POSTGRES is set, as in `.ci/run`, they fail.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

# Read before any test: each begins without the machine's settings.
_IS_NEEDED = bool(os.environ.get("GATEWAY_TESTS_NEED_POSTGRES"))
_TEMPLATE = "gateway_template"
_MIGRATED = "gateway_migrated"
_MEMORY = "/dev/shm"
_ROOM_BYTES = 2 << 30
_SETTINGS: Mapping[str, str] = {
    "fsync": "off",
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "16MB",
    "autovacuum": "off",
}


def find_programs() -> Path | None:
    """Return the newest folder with `initdb` and `postgres`, or None."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: each.parent.name)
    return folders[-1] if folders else None


def _roomy_memory() -> str | None:
    """Return the folder in memory if it has room; None is the default for temporary folders.

    On a disk, the copy of a database for a test takes ten times as long.
    """
    try:
        return _MEMORY if shutil.disk_usage(_MEMORY).free > _ROOM_BYTES else None
    except OSError:
        return None


class PostgresServer:
    """A cluster that listens on a socket in its own folder."""

    def __init__(
        self, programs: Path, *, parent: str | None = None, settings: Mapping[str, str] = _SETTINGS
    ) -> None:
        """`parent` is where its folder is made; None: in memory if that has room."""
        self._programs = programs
        self._settings = settings
        # PostgreSQL refuses to run as root. A socket's path may have 107 bytes, so it is short.
        self._user = "postgres" if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="gw-pg-", dir=parent or _roomy_memory()))
        self._numbers = itertools.count()
        self._has_migrated = False
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            shutil.chown(self._folder, self._user)

    def start(self) -> None:
        """Make the cluster and start the server; it ends when this process does."""
        data = self._folder / "data"
        self._run(
            "initdb", "-D", str(data), "-A", "trust", "-U", "gateway", "--no-sync", "-E", "UTF8"
        )
        self._serve()
        self._sql("postgres", f"CREATE DATABASE {_TEMPLATE}")

    def stop(self) -> None:
        """Stop the server at once, and delete the cluster."""
        self.crash()
        shutil.rmtree(self._folder, ignore_errors=True)

    def crash(self) -> None:
        """End the server without its checkpoint, as a crash would."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(b"keep")
            self._process.stdin.close()
            self._process.wait(60)

    def restart(self) -> None:
        """Start the server again after `crash`."""
        self._serve()

    def copied(self) -> PostgresServer:
        """Start a standby from a copy of the current state; later changes never reach it."""
        copy = PostgresServer(self._programs)
        data = copy._folder / "data"
        self._run(
            "pg_basebackup", "-h", str(self._folder), "-U", "gateway", "-D", str(data), "-c", "fast"
        )
        (data / "standby.signal").touch()
        copy._serve()
        return copy

    def promote(self) -> None:
        """Let a standby take over: it begins a new timeline, and accepts writes."""
        self._run("pg_ctl", "promote", "-w", "-D", str(self._folder / "data"))

    @property
    def pid(self) -> int:
        """The server's main process, the parent of its sessions."""
        note = self._folder / "data" / "postmaster.pid"
        return int(note.read_text().splitlines()[0])

    @property
    def folder(self) -> Path:
        """The socket's folder: the `host` of a URL."""
        return self._folder

    @property
    def socket_path(self) -> str:
        """The path of the server's socket."""
        return str(self._folder / ".s.PGSQL.5432")

    def address_of(self, database: str) -> str:
        return f"postgresql://gateway@/{database}?host={self._folder}"

    @contextmanager
    def database(self, *, migrated: bool = False, language: str = "") -> Iterator[str]:
        """Make a database, and drop it afterwards; yields its URL.

        It is empty, or has the gateway's tables, which take longer to make than to copy. With a
        `language`, such as `en-US`, it is empty and sorts texts accordingly.
        """
        name = f"test_{next(self._numbers)}"
        template = self._migrated_template() if migrated else _TEMPLATE
        options = f"TEMPLATE {template}"
        if language:
            options = f"TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '{language}'"
        self._sql("postgres", f"CREATE DATABASE {name} {options}")
        try:
            yield self.address_of(name)
        finally:
            self._sql("postgres", f"DROP DATABASE {name} WITH (FORCE)")

    @property
    def knows_languages(self) -> bool:
        """Whether databases can have a language: since PostgreSQL 15."""
        import psycopg

        with psycopg.connect(self.address_of("postgres")) as raw:
            return raw.info.server_version >= 150_000

    def _migrated_template(self) -> str:
        """Return the name of a database with the gateway's tables; the first call makes it."""
        from gateway_nodes.postgres.migrations import migrate
        from gateway_nodes.postgres.session import connect

        if not self._has_migrated:
            self._sql("postgres", f"CREATE DATABASE {_MIGRATED} TEMPLATE {_TEMPLATE}")
            with connect(self.address_of(_MIGRATED), "tests") as raw:
                migrate(raw)
            self._has_migrated = True
        return _MIGRATED

    def _serve(self) -> None:
        named = [f"{name}={value}" for name, value in self._settings.items()]
        settings = [part for setting in named for part in ("-c", setting)]
        command = [
            str(self._programs / "postgres"),
            *("-D", str(self._folder / "data")),
            *("-c", f"unix_socket_directories={self._folder}"),
            *settings,
        ]
        # The shell stops the server as soon as its input closes: with the run, however that ends. A
        # run that was killed said nothing before, and leaves no cluster in memory.
        watch = (
            '"$@" </dev/null & server=$!; kept=$(cat); kill -QUIT $server; wait $server; '
            f'[ "$kept" ] || rm -rf "{self._folder}"'
        )
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", watch, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                user=self._user,
                cwd="/",
                start_new_session=True,
            )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        import psycopg

        give_up_at = time.monotonic() + 120
        while True:
            try:
                psycopg.connect(self.address_of("postgres")).close()
            except psycopg.OperationalError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.05)
            else:
                return

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            user=self._user,
            cwd="/",
        )

    def _sql(self, database: str, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.address_of(database), autocommit=True) as raw:
            raw.execute(statement.encode())


def start_or_skip() -> PostgresServer:
    """Return a running server; without the programs skip, or fail if the run needs one."""
    programs = find_programs()
    if programs is None or not _has_user():
        sentence = "PostgreSQL is not installed: apt-get install postgresql"
        if _IS_NEEDED:
            pytest.fail(sentence)
        pytest.skip(sentence)
    server = PostgresServer(programs)
    try:
        server.start()
    except BaseException:
        server.stop()
        raise
    return server


def _has_user() -> bool:
    """Whether there is a user who may run the server."""
    if os.geteuid() != 0:
        return True
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return False
    return True
