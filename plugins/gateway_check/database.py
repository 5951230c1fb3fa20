"""The database rows of `gateway check`."""

from collections.abc import Sequence
from functools import partial

from gateway.contracts.store import CheckRow
from gateway.domain.eip3009 import checksum_address
from gateway.errors import SettingsError
from gateway.settings import Settings, check_database
from gateway.store.data_folder import open_store
from gateway.store.nonces import open_by_signer


async def find_checks(settings: Settings) -> Sequence[CheckRow]:
    """Return each row's name, and a function that returns its sentence or raises an error."""
    try:
        if settings.database_url:
            check_database(settings)
        return await open_store(settings, name="gateway check").check_rows()
    except SettingsError as error:
        return [("database", partial(_refuse, error))]


async def check_open_payments(settings: Settings) -> str:
    """Return the settlement keys that have signed for open payments."""
    async with open_store(settings, name="gateway check") as store:
        found = await store.sum(open_by_signer)
    signed = ", ".join(
        f"{count} signed by {checksum_address(signer)}" for signer, count in found.items()
    )
    return signed or "no key has signed for an open payment, so any key may be removed"


async def _refuse(error: SettingsError) -> str:
    raise error
