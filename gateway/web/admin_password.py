"""The admin password: its argon2 hash from the settings, or one made at the first start."""

import asyncio
import importlib
import secrets

from gateway.contracts import Store
from gateway.errors import TooManyRequests
from gateway.settings import Settings
from gateway.threads import Threads

_META = "admin_password_hash"
# Passwords that wait to be compared. Each takes some 0.1 s, on a small machine half a second.
_MAX_WAITING = 8
_QUEUE_S = 5  # after which such a queue is empty


class AdminPassword:
    """Knows the hash; argon2 takes 64 MB and tens of milliseconds, so only when it is needed."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._hash = str(settings.admin_password_hash)
        self._making = asyncio.Lock()
        self._threads = Threads("argon2", 1)
        self._waiting = 0

    async def make_first(self) -> None:
        """Make and print a password where the operator has set none and none was made before."""
        is_set = self._settings.admin_password_hash or self._settings.admin_password
        if is_set or await self._store.known_meta(_META) is not None:
            return
        password = secrets.token_urlsafe(12)
        made = await self._threads.run(hash_password, password)
        await self._store.meta(_META, lambda: made)
        print(f"Admin password, shown this once: {password}", flush=True)  # noqa: T201 - never into a log

    async def hash(self) -> str:
        """Return the argon2 hash."""
        async with self._making:
            if not self._hash and self._settings.admin_password:
                password = str(self._settings.admin_password)
                self._hash = await self._threads.run(hash_password, password)
        return self._hash or await self._store.known_meta(_META) or ""

    async def matches(self, password: str, *, is_known: bool = False) -> bool:
        """Whether this is the password; one is compared at a time.

        `is_known`: it comes from a known browser, which may wait in a queue that is full.

        Raises `TooManyRequests` where too many wait already.
        """
        if self._waiting >= _MAX_WAITING and not is_known:
            raise TooManyRequests(_QUEUE_S)
        self._waiting += 1
        try:
            return await self._threads.run(_matches, await self.hash(), password)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Compare nothing more."""
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
