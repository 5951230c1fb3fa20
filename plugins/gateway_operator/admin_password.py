"""The admin password: an argon2 hash from the settings, or created at first start."""

import asyncio
import importlib
import secrets

from gateway.concurrency.threads import Threads
from gateway.errors import TooManyRequests
from gateway.settings import Settings
from gateway.store import SqlStore
from gateway_operator.settings import operator_settings_of

_META = "admin_password_hash"
# A comparison takes 0.1 s, on a small machine 0.5 s, so a full queue drains within `_QUEUE_S`.
_MAX_WAITING = 8
_QUEUE_S = 5


class AdminPassword:
    """Verifies passwords against the hash.

    argon2 takes 64 MB and tens of milliseconds, so it is imported and run only when needed.
    """

    def __init__(self, settings: Settings, store: SqlStore) -> None:
        chosen = operator_settings_of(settings)
        self._password, self._hash = str(chosen.admin_password), str(chosen.admin_password_hash)
        self._store = store
        self._hash_lock = asyncio.Lock()
        self._threads = Threads("argon2", 1)
        self._waiting = 0

    async def make_first(self) -> None:
        """Create and print a password, unless one is set or an earlier start created one."""
        if self._hash or self._password or await self._store.known_meta(_META) is not None:
            return
        password = secrets.token_urlsafe(12)
        made = await self._threads.run(hash_password, password)
        if await self._store.meta(_META, lambda: made) != made:
            # Another node started at the same time; its password is valid.
            return
        # Logs must not contain it.
        print(f"Admin password, shown only this once: {password}", flush=True)  # noqa: T201

    async def hash(self) -> str:
        """Return the argon2 hash."""
        async with self._hash_lock:
            if not self._hash and self._password:
                self._hash = await self._threads.run(hash_password, self._password)
        return self._hash or await self._store.known_meta(_META) or ""

    async def matches(self, password: str, *, is_known: bool = False) -> bool:
        """Whether the password is correct. Passwords are compared one at a time.

        Raises `TooManyRequests` if the queue is full, unless the browser `is_known`.
        """
        if self._waiting >= _MAX_WAITING and not is_known:
            raise TooManyRequests(_QUEUE_S)
        self._waiting += 1
        try:
            return await self._threads.run(_matches, await self.hash(), password)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Stop the thread; later comparisons fail."""
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
