"""The row of the chain's pace."""

from datetime import UTC, datetime

from gateway.chain.pace import describe_pace, measure_pace, paces_differ
from gateway.contracts import Chain
from gateway.settings import Settings
from gateway.store.data_folder import open_store
from gateway_operator.sql import chain_pace


async def check_pace(settings: Settings, chain: Chain) -> str:
    """Return the pace of the chain.

    Raises `ValueError` if it is not the one that the gateway has stored, and `ChainUnavailable`.
    """
    measured = await measure_pace(chain)
    if measured is None:
        return "not known yet: the chain is young, or its pace is just changing"
    async with open_store(settings, name="gateway check") as store:
        usual = await store.sum(chain_pace.read)
    if usual is None or not paces_differ(usual.block_s, measured):
        return describe_pace(measured)
    raise ValueError(
        f"{describe_pace(measured)}, but {describe_pace(usual.block_s)}{_until(usual)}. "
        f"GATEWAY_CONFIRMATIONS, {settings.confirmations} now, and the limits of RPC plans (rows "
        "rpc) count blocks: set them for the new pace. This row is ok again after a day."
    )


def _until(usual: chain_pace.UsualPace) -> str:
    if usual.differs_since is None:
        return " before"
    noticed = datetime.fromtimestamp(usual.differs_since, UTC)
    return f" until about {noticed:%Y-%m-%d %H:%M} UTC"
