"""The checklist of a running gateway, for the overview."""

from collections.abc import Sequence

from gateway_operator.checklist import Item, make_checklist, read_stored
from gateway_operator.desk.condition import Condition
from gateway_operator.desk.desk import Desk

# Conditions that say the same as an open item.
_SAME = ("backup", "cost_unknown")


async def read_checklist(desk: Desk) -> list[Item]:
    """Return the list of `gateway check`; empty in a command."""
    if desk.running is None:
        return []
    return make_checklist(
        desk.settings,
        desk.catalog,
        await desk.store.sum(read_stored, desk.settings.wallet_key),
        ignored=desk.running.ignored_settings(),
        channels=desk.running.channels(),
        has_refund_key=desk.refunds is not None,
    )


def without_items(found: Sequence[Condition], checklist: Sequence[Item]) -> list[Condition]:
    """Return the conditions without the notes that open items name already."""
    if not any(not item.is_done for item in checklist):
        return list(found)
    return [one for one in found if one.level != "note" or one.condition not in _SAME]
