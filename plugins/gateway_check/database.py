"""The database rows of `gateway check`: one for SQLite, several for PostgreSQL."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from gateway.domain.eip3009 import checksum_address
from gateway.errors import SettingsError
from gateway.settings import Settings, check_database
from gateway.store import SqliteStore
from gateway.store.nonces import open_by_signer
from gateway.store.opening import open_store

NamedCheck = tuple[str, Callable[[], Awaitable[str]]]


async def find_checks(settings: Settings) -> list[NamedCheck]:
    """Return each row's name, and a function that returns its sentence or raises `ValueError`."""
    if not settings.database_url:
        return [("database", partial(_check_file, settings))]
    try:
        check_database(settings)
    except SettingsError as error:
        return [("database", partial(_repeat, str(error), ok=False))]
    # Most gateways have no PostgreSQL, and its library takes a tenth of a second.
    from gateway.store.postgres import checks  # noqa: PLC0415

    found = await asyncio.to_thread(checks.look, settings.database_url)
    return [(one.name, partial(_repeat, one.found, ok=one.ok)) for one in found]


async def check_open_payments(settings: Settings) -> str:
    """Return the settlement keys that have signed for open payments."""
    async with open_store(settings, name="gateway check") as store:
        found = await store.sum(open_by_signer)
    signed = ", ".join(
        f"{count} signed by {checksum_address(signer)}" for signer, count in found.items()
    )
    return signed or "no key has signed for an open payment, so any key may be removed"


async def _check_file(settings: Settings) -> str:
    async with SqliteStore(settings.data_dir / "gateway.db") as store:
        await store.ping()
        payments = (await store.counts())["payments"]
    return f"writable, {sum(payments.values())} payments"


async def _repeat(found: str, *, ok: bool) -> str:
    if not ok:
        raise ValueError(found)
    return found
