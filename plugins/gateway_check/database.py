"""The database rows of `gateway check`. A database that does not exist is not made."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gateway.chain.keys import address_of, load_settlement_keys
from gateway.chain.signer import MAX_WAITING
from gateway.contracts.store import CheckRow
from gateway.domain.eip3009 import checksum_address
from gateway.errors import SettingsError
from gateway.settings import Settings, check_database
from gateway.store.data_folder import check_network, open_store
from gateway.store.nonces import open_by_signer, unmined_by_signer
from gateway_operator.checklist import Stored, read_stored

_NAME = "gateway check"


def has_database(settings: Settings) -> bool:
    """Whether there is a database yet. The first start makes one on SQLite."""
    return bool(settings.database_url) or (settings.data_dir / "gateway.db").exists()


def existing_parent(folder: Path) -> Path:
    """Return the folder or its nearest existing parent."""
    return next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())


async def find_checks(settings: Settings) -> Sequence[CheckRow]:
    """Return each row's name, and a function that returns its sentence or raises an error."""
    if not has_database(settings):
        return [("database", partial(_check_folder, settings))]
    try:
        if settings.database_url:
            check_database(settings)
        (name, check), *others = await open_store(settings, name=_NAME).check_rows()
    except SettingsError as error:
        return [("database", partial(_refuse, error))]

    async def check_first() -> str:
        found = await check()
        async with open_store(settings, name=_NAME) as store:
            await check_network(settings, store)
        return found

    return [(name, check_first), *others, ("open payments", lambda: _check_open(settings))]


async def read_database(settings: Settings) -> Stored:
    """Return the database's part of the checklist; an empty one before the first start."""
    if not has_database(settings):
        return Stored()
    async with open_store(settings, name=_NAME) as store:
        return await store.sum(read_stored, settings.wallet_key)


async def _check_folder(settings: Settings) -> str:
    if not os.access(existing_parent(settings.data_dir), os.W_OK):
        raise SettingsError(
            f"Cannot write to the folder {settings.data_dir}. Set another folder: "
            "GATEWAY_DATA_DIR=/data"
        )
    return f"none yet: the first start makes it in {settings.data_dir}"


async def _check_open(settings: Settings) -> str:
    """Return the settlement keys that have signed for open payments.

    Raises `SettingsError` if a key signs nothing more now.
    """
    async with open_store(settings, name=_NAME) as store:
        found = await store.sum(open_by_signer)
        unmined = await store.sum(unmined_by_signer)
    keys = [address_of(secret) for secret in load_settlement_keys(settings)]
    full = [checksum_address(one) for one in keys if unmined.get(one, 0) >= MAX_WAITING]
    if full:
        raise SettingsError(
            f"{', '.join(full)} has {MAX_WAITING} transactions that are not mined, and signs no "
            "more. If the chain makes blocks, add keys to GATEWAY_SETTLEMENT_KEYS: docs/scale.md "
            "has how many."
        )
    signed = ", ".join(
        f"{count} signed by {checksum_address(signer)}" for signer, count in found.items()
    )
    return signed or "no key has signed for an open payment, so any key may be removed"


async def _refuse(error: SettingsError) -> str:
    raise error
