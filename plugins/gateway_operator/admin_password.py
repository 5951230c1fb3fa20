"""The admin password: its argon2 hash from the settings, or a password made at the first start."""

import asyncio
import importlib
import secrets

from gateway.concurrency.threads import Threads
from gateway.errors import TooManyRequests
from gateway.settings import Settings
from gateway.store import SqlStore

_META = "admin_password_hash"
# So many passwords may wait to be compared. A comparison takes about 0.1 s, on a small machine
# half a second, so a full queue is empty after the second figure.
_MAX_WAITING = 8
_QUEUE_S = 5


class AdminPassword:
    """Compares passwords with the hash.

    argon2 takes 64 MB and tens of milliseconds, so it is imported and run only when needed.
    """

    def __init__(self, settings: Settings, store: SqlStore) -> None:
        self._settings = settings
        self._store = store
        self._hash = str(settings.admin_password_hash)
        self._hash_lock = asyncio.Lock()
        self._threads = Threads("argon2", 1)
        self._waiting = 0

    async def make_first(self) -> None:
        """Make and print a password, unless one is set or an earlier start made one."""
        is_set = self._settings.admin_password_hash or self._settings.admin_password
        if is_set or await self._store.known_meta(_META) is not None:
            return
        password = secrets.token_urlsafe(12)
        made = await self._threads.run(hash_password, password)
        if await self._store.meta(_META, lambda: made) != made:
            # Another node started at the same time, and its password counts.
            return
        # It must not go into a log.
        print(f"Admin password, shown only this once: {password}", flush=True)  # noqa: T201

    async def hash(self) -> str:
        """Return the argon2 hash."""
        async with self._hash_lock:
            if not self._hash and self._settings.admin_password:
                password = str(self._settings.admin_password)
                self._hash = await self._threads.run(hash_password, password)
        return self._hash or await self._store.known_meta(_META) or ""

    async def matches(self, password: str, *, is_known: bool = False) -> bool:
        """Whether this is the password; one password is compared at a time.

        `is_known` says that a known browser asks, which may wait in a full queue, too.

        Raises `TooManyRequests` where the queue is full.
        """
        if self._waiting >= _MAX_WAITING and not is_known:
            raise TooManyRequests(_QUEUE_S)
        self._waiting += 1
        try:
            return await self._threads.run(_matches, await self.hash(), password)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Stop the thread that compares; later comparisons fail."""
        self._threads.close()


def hash_password(password: str) -> str:
    """Return the argon2 hash of a password."""
    hashed: str = importlib.import_module("argon2").PasswordHasher().hash(password)
    return hashed


def _matches(stored: str, password: str) -> bool:
    argon2 = importlib.import_module("argon2")
    try:
        return bool(argon2.PasswordHasher().verify(stored, password))
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False
