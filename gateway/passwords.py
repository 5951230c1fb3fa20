"""The admin password: its argon2 hash from the settings, or one made at the first start."""

import asyncio
import importlib
import secrets

from gateway.contracts import Store
from gateway.settings import Settings

_META = "admin_password_hash"


class AdminPassword:
    """Knows the hash; argon2 takes 64 MB and tens of milliseconds, so only when it is needed."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._hash = str(settings.admin_password_hash)
        self._making = asyncio.Lock()

    async def make_first(self) -> None:
        """Make and print a password where the operator has set none and none was made before."""
        is_set = self._settings.admin_password_hash or self._settings.admin_password
        if is_set or await self._store.known_meta(_META) is not None:
            return
        password = secrets.token_urlsafe(12)
        made = await asyncio.to_thread(hash_password, password)
        await self._store.meta(_META, lambda: made)
        print(f"Admin password, shown this once: {password}", flush=True)  # noqa: T201 - never into a log

    async def hash(self) -> str:
        """Return the argon2 hash."""
        async with self._making:
            if not self._hash and self._settings.admin_password:
                password = str(self._settings.admin_password)
                self._hash = await asyncio.to_thread(hash_password, password)
        return self._hash or await self._store.known_meta(_META) or ""

    async def matches(self, password: str) -> bool:
        """Whether this is the password."""
        return await asyncio.to_thread(_matches, await self.hash(), password)


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
