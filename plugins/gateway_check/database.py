"""The rows of `gateway check` about the database: one for a file, several for a PostgreSQL."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from gateway.domain.eip3009 import checksum_address
from gateway.errors import SettingsError
from gateway.settings import Settings, check_database
from gateway.store import SqliteStore
from gateway.store.nonces import open_by_signer
from gateway.store.opening import open_store

Question = tuple[str, Callable[[], Awaitable[str]]]


async def find_questions(settings: Settings) -> list[Question]:
    """Return each row's name, and what returns its sentence or raises `ValueError`."""
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
    """Return which settlement keys have signed for payments whose outcome is not known yet."""
    async with open_store(settings, name="gateway check") as store:
        found = await store.sum(open_by_signer)
    signed = ", ".join(
        f"{count} signed by {checksum_address(signer)}" for signer, count in found.items()
    )
    return signed or "no key has signed for a payment that is open: each may be removed"


async def _check_file(settings: Settings) -> str:
    async with SqliteStore(settings.data_dir / "gateway.db") as store:
        await store.ping()
        payments = (await store.counts())["payments"]
    return f"writable, {sum(payments.values())} payments"


async def _repeat(found: str, *, ok: bool) -> str:
    if not ok:
        raise ValueError(found)
    return found
