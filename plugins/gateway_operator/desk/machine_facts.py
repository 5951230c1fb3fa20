"""Facts of disk, event loop, logins, backups, nodes and unused transfers."""

from collections.abc import Mapping, Sequence

import attrs

from gateway.contracts.nodes import NodeRecord
from gateway.store.disk import DiskState, read_disk
from gateway.store.sql import Connection
from gateway_operator.audit_log import ActionRecord
from gateway_operator.desk import backups
from gateway_operator.desk.backups import BackupStatus
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.moved import read_unmarked as read_unmarked_moved
from gateway_operator.desk.payments import late_after_s
from gateway_operator.desk.settings_list import StoredState
from gateway_operator.desk.settings_list import read_state as read_settings_state
from gateway_operator.movements import OpenMovement, last_restore
from gateway_operator.sql import actions, logins, open_movements, seen_transfers
from gateway_operator.unused_transfers import UnusedTransfer

_HOUR_S = 3_600.0
_MAX_LOGINS = 20
_MAX_LOST = 10


@attrs.frozen(kw_only=True)
class MachineFacts:
    """Current values; None: not known. Times are Unix seconds."""

    disk: DiskState | None = None
    # Until only the floor is free, at the pace of the last day.
    disk_lasts_s: float | None = None
    # By place in the settings: seconds of failures only.
    failing_rpc: Mapping[int, float] = attrs.field(factory=dict)
    # By plugin: its longest block in the last ten minutes, in seconds.
    blocked: Mapping[str, float] = attrs.field(factory=dict)
    # Of the last hour.
    refused_logins: int = 0
    new_logins: Sequence[ActionRecord] = ()
    backups: BackupStatus | None = None
    # Of the last day; empty on SQLite.
    nodes: Sequence[NodeRecord] = ()
    # Times of unmarked unused transfers; None: not searched yet.
    unused: Sequence[float] | None = None
    # The largest of them that no buyer can use any more, and that are worth a price.
    lost: Sequence[UnusedTransfer] = ()
    # USDC that moved without a record.
    moved: Sequence[OpenMovement] = ()
    # Since the newest blocks were searched for it, and why not; None: not known.
    movements_unread_s: float | None = None
    movements_problem: str | None = None
    # The restore that made this database, and payments from before it that are in no record.
    restored: ActionRecord | None = None
    forgotten: Sequence[UnusedTransfer] = ()
    # Settings that the page has stored.
    settings: StoredState = attrs.field(factory=StoredState)


async def read_machine(desk: Desk) -> MachineFacts:
    """Return these facts, without any request to the network."""
    now = desk.now()
    refused, new_logins = await desk.store.sum(_read_logins, now - _HOUR_S)
    search = desk.unused
    unmarked = [] if search.searched_at is None else await _read_unmarked(desk)
    restored = await desk.store.sum(last_restore)
    forgotten = [] if restored is None else [one for one in unmarked if one.is_older(restored.at)]
    known_forgotten = set(forgotten)
    running = desk.running
    disk = read_disk(desk.settings, is_full=desk.store.is_full)
    desk.disk_pace.note(now, disk.free_bytes)
    return MachineFacts(
        disk=disk,
        disk_lasts_s=desk.disk_pace.lasts_s(now, disk.free_bytes, disk.floor_bytes),
        failing_rpc=desk.rpc_watch.failing(),
        blocked={} if running is None else running.blocked(),
        refused_logins=refused,
        new_logins=new_logins,
        backups=await backups.status(desk),
        nodes=await desk.store.nodes.nodes(),
        unused=(
            None
            if search.searched_at is None
            else [one.at for one in unmarked if one not in known_forgotten]
        ),
        lost=await _choose_lost(desk, unmarked, now),
        moved=await read_unmarked_moved(desk),
        movements_unread_s=await _read_unread(desk, now),
        movements_problem=desk.movements.problem,
        restored=restored,
        forgotten=forgotten,
        settings=await read_settings_state(desk),
    )


async def _read_unread(desk: Desk, now: float) -> float | None:
    """Return the seconds since a node read the newest blocks, or since this one started."""
    if desk.running is None:
        return None
    stored = await desk.store.sum(open_movements.read_at)
    return now - max(desk.running.started_at, desk.movements.read_at or 0.0, stored or 0.0)


async def _choose_lost(
    desk: Desk, unmarked: Sequence[UnusedTransfer], now: float
) -> list[UnusedTransfer]:
    """Return the largest transfers of buyers who can only get their money back.

    Anyone can send dust, so there are few, and none below the lowest price. What an older
    transfer bought may be missing from a restored database, so it is left out.
    """
    if not unmarked:
        return []
    late_s, born_at = late_after_s(desk), float(await desk.store.known_meta("born_at") or 0)
    least = min((one.endpoint.price_units for one in desk.catalog.everything()), default=0)
    lost = [
        one
        for one in unmarked
        if not one.is_older(born_at)
        and now - one.at > late_s
        and one.transfer.amount_units >= least
    ]
    return sorted(lost, key=lambda one: -one.transfer.amount_units)[:_MAX_LOST]


async def _read_unmarked(desk: Desk) -> list[UnusedTransfer]:
    known = desk.unused.known
    hashes = [one.transfer.tx_hash for one in known]
    seen = await desk.store.sum(seen_transfers.find, hashes) if hashes else {}
    return [one for one in known if (one.transfer.tx_hash, one.transfer.log_index) not in seen]


def _read_logins(db: Connection, since: float) -> tuple[int, list[ActionRecord]]:
    newest = actions.find(db, None, _MAX_LOGINS, action="login")
    owned = {one.subject for one in actions.find(db, None, _MAX_LOGINS, action="login.mine")}
    fresh = [one for one in newest if one.at >= since and _is_new(one) and str(one.id) not in owned]
    return logins.refused_since(db, since), fresh


def _is_new(login: ActionRecord) -> bool:
    return isinstance(login.after, dict) and login.after.get("knownBrowser") is False
