"""The rows of `gateway check` about the database."""

from collections.abc import Sequence
from functools import partial

from gateway.contracts.store import CheckRow
from gateway.domain.eip3009 import checksum_address
from gateway.errors import SettingsError
from gateway.settings import Settings, check_database
from gateway.store.nonces import open_by_signer
from gateway.store.opening import open_store


async def find_questions(settings: Settings) -> Sequence[CheckRow]:
    """Return each row's name, and what returns its sentence, or raises what is wrong."""
    try:
        if settings.database_url:
            check_database(settings)
        return await open_store(settings, name="gateway check").check_rows()
    except SettingsError as error:
        return [("database", partial(_refuse, error))]


async def check_open_payments(settings: Settings) -> str:
    """Return which settlement keys have signed for payments whose outcome is not known yet."""
    async with open_store(settings, name="gateway check") as store:
        found = await store.sum(open_by_signer)
    signed = ", ".join(
        f"{count} signed by {checksum_address(signer)}" for signer, count in found.items()
    )
    return signed or "no key has signed for a payment that is open: each may be removed"


async def _refuse(error: SettingsError) -> str:
    raise error
