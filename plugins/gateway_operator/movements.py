"""Watches USDC that leaves the gateway's addresses, or comes to its keys, without a record."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from gateway.chain.block_times import first_block_since
from gateway.chain.keys import address_of, load_settlement_keys
from gateway.chain.log_ranges import LogsTooNarrow
from gateway.contracts import Chain, Clock
from gateway.contracts.chain import Addresses
from gateway.domain import Block, MinedTransfer
from gateway.errors import ChainUnavailable
from gateway.settings import Settings
from gateway.store import SqlStore
from gateway.store.sql import Connection
from gateway_operator.audit_log import ActionRecord
from gateway_operator.background_search import BackgroundSearch
from gateway_operator.sql import actions, ledger, open_movements, seen_transfers
from gateway_operator.sql.movements import EXPLAINED, Movement, explain
from gateway_operator.sql.open_movements import OpenRow, Progress
from gateway_operator.transfer_search import transfer_pieces

# A search result is fresh for this many seconds, so that a theft is known within two minutes.
_TTL_S = 25.0
_DAYS = 7.0
# The newest blocks are read first. Of older ones, a search reads some pieces for some seconds,
# because the newest are due again.
_NEWEST_BLOCKS = 1_000
_PIECES = 10
_OLDER_S = 20.0
# 33 minutes of Base. Narrow endpoints answer for smaller pieces, down to the least.
_PIECE_BLOCKS = 10_000
_LEAST_BLOCKS = 100
# Seconds of pause after each piece, because sales need the same endpoint: at least the first, and
# as long as the piece took, up to the second.
_PAUSE_S = 0.5
_MAX_PAUSE_S = 5.0
# Seconds for which the newest blocks count as read.
CURRENT_S = 120.0
# Anyone can send dust to an address, so only this many of the largest incoming transfers are kept.
# Outgoing ones need the key. A search reads the times of few blocks.
_MAX_IN = 200
_MAX_OUT = 1_000
_MAX_TIMES = 20


@attrs.frozen(kw_only=True)
class OpenMovement:
    """A movement that no record explains."""

    movement: Movement
    # Its block's time, in Unix seconds; None: not known yet.
    at: float | None


def roles_of(settings: Settings, settlement: Iterable[str], refund: str | None) -> dict[str, str]:
    """Return the gateway's addresses in lower case, each with its role."""
    roles = {address.lower(): "settlement" for address in settlement}
    if refund is not None:
        roles[refund.lower()] = "refund"
    return roles | {settings.wallet_key: "wallet"}


def settlement_addresses(settings: Settings) -> list[str]:
    """Return the addresses of the settlement keys in the settings, for a command."""
    return [address_of(secret) for secret in load_settlement_keys(settings)]


async def with_earlier_keys(store: SqlStore, roles: Mapping[str, str]) -> dict[str, str]:
    """Return the addresses, and those of refund keys that were replaced since."""
    earlier = await store.sum(ledger.refund_senders)
    return dict.fromkeys(earlier, "refund") | dict(roles)


class MovementSearch(BackgroundSearch):
    """Searches the last seven days, the newest blocks first, and keeps what is not explained.

    Blocks that are not safe yet are read again by each search, so a theft shows at once and a
    reorganised transfer disappears. What safe blocks held is stored, with the blocks that were
    read: an outgoing transfer until it is explained, an incoming one for seven days.
    """

    name = "movement-search"
    ttl_s = _TTL_S

    def __init__(
        self, chain: Chain, store: SqlStore, roles: Callable[[], Mapping[str, str]], now: Clock
    ) -> None:
        super().__init__(chain, store, now)
        self._roles = roles
        self.pause_s = _PAUSE_S
        # Newest first.
        self.known: Sequence[OpenMovement] = ()
        # When an operator booked an outgoing transfer last, in Unix seconds.
        self.booked_at = 0.0
        # When this process read the newest blocks last; None: not yet.
        self.read_at: float | None = None
        self._shown: Sequence[Movement] = ()
        # As stored; and of each row, the gateway's address and its role then.
        self._progress: Progress | None = None
        self._rows: dict[tuple[str, int], OpenRow] = {}
        # Not explained, in safe blocks and in newer ones.
        self._safe: Sequence[MinedTransfer] = ()
        self._fresh: Sequence[MinedTransfer] = ()
        self._times: dict[int, float] = {}
        self._piece_blocks = _PIECE_BLOCKS

    @property
    def is_complete(self) -> bool:
        """Whether all blocks of the period were read."""
        return self._progress is not None and not self._progress.gaps

    @property
    def is_current(self) -> bool:
        """Whether all blocks were read, the newest a moment ago."""
        read_at = self.read_at
        return self.is_complete and read_at is not None and self._now() - read_at < CURRENT_S

    async def load(self) -> None:
        """Show what is stored, which needs no chain; only the first call reads it."""
        if self._progress is None:
            await self._load(await self._find_roles())

    async def _advance(self) -> None:
        began, roles = time.monotonic(), await self._find_roles()
        await self._load(roles)
        safe, head = await self._chain.safe_head(), await self._chain.head()
        progress = await self._begin(head, sorted(roles))
        progress = await self._read_newest(progress, safe, head, roles)
        self._piece_blocks = min(2 * self._piece_blocks, _PIECE_BLOCKS)
        for _ in range(_PIECES):
            if not progress.gaps or time.monotonic() - began > _OLDER_S:
                break
            progress = await self._read_older(progress, roles)
        await self._find_times(progress)

    async def _find_roles(self) -> dict[str, str]:
        return await with_earlier_keys(self._store, self._roles())

    async def _load(self, roles: Mapping[str, str]) -> None:
        """Read what any node has stored, and add it to what this one could not store yet."""
        self._progress, rows = await self._store.sum(open_movements.read)
        self.booked_at = await self._store.sum(seen_transfers.booked_at)
        unsaved = [one for one in self._safe if _place(one) not in self._rows]
        self._rows = {_place(one.transfer): one for one in rows}
        self._times |= {one.transfer.block_number: one.at for one in rows if one.at is not None}
        self._safe = [one.transfer for one in rows]
        self._safe += [one for one in unsaved if _place(one) not in self._rows]
        self._fresh = [one for one in self._fresh if _place(one) not in self._rows]
        await self._explain(roles)

    async def _begin(self, head: Block, addresses: Sequence[str]) -> Progress:
        """Return the progress so far; for another address, all blocks are read again.

        That begins a week ago, or at the database's first block. The records of a restored
        database begin before it was made.
        """
        last, since = self._progress, self._now() - _DAYS * 86_400
        born_at = float(await self._store.known_meta("born_at") or 0)
        is_same_chain = last is not None and last.next_block <= head.number + 1
        if last is not None and is_same_chain and set(addresses) <= set(last.addresses):
            return last
        # Otherwise the embedded chain, or a test network, has begun anew.
        if last is not None and not is_same_chain and head.timestamp < last.read_at:
            raise ChainUnavailable("The RPC endpoint is behind the blocks that were read before.")
        is_restored = await self._store.sum(last_restore) is not None
        start = since if is_restored else max(born_at, since)
        begin = await first_block_since(self._chain, start, head=head)
        born_block = 0
        if last is not None and last.born_at == born_at:
            born_block = last.born_block
        elif born_at > since:
            born_block = await first_block_since(self._chain, born_at, head=head)
        return Progress(
            addresses=addresses,
            next_block=min(begin, last.oldest_unread) if last and is_same_chain else begin,
            read_at=0.0,
            born_at=born_at,
            born_block=born_block,
        )

    async def _read_newest(
        self, progress: Progress, safe: Block, head: Block, roles: Mapping[str, str]
    ) -> Progress:
        begin = progress.next_block
        first = max(begin, head.number - _PIECE_BLOCKS + 1)
        if first > begin:
            first = max(first, min(safe.number, head.number - _NEWEST_BLOCKS) + 1)
        newest = await self._read(first, head.number, roles, least_blocks=_LEAST_BLOCKS)
        self._safe = [*self._safe, *(one for one in newest if one.block_number <= safe.number)]
        self._fresh = [one for one in newest if one.block_number > safe.number]
        gap = [(begin, min(first - 1, safe.number))] if begin < first else []
        self.read_at = self._now()
        progress = attrs.evolve(
            progress,
            gaps=[*progress.gaps, *gap],
            next_block=max(begin, safe.number + 1),
            read_at=self.read_at,
        )
        await self._explain(roles, progress)
        return progress

    async def _read_older(self, progress: Progress, roles: Mapping[str, str]) -> Progress:
        """Read the newest piece of older blocks; try a smaller one if the endpoint is narrow."""
        first, last = progress.gaps[-1]
        size = self._piece_blocks
        begin = max(first, last - size + 1)
        await asyncio.sleep(self.pause_s)
        try:
            found = await self._read(begin, last, roles, least_blocks=size)
        except LogsTooNarrow:
            if size <= _LEAST_BLOCKS:
                raise
            self._piece_blocks = max(size // 2, _LEAST_BLOCKS)
            return progress
        self._safe = [*self._safe, *found]
        rest = [(first, begin - 1)] if first < begin else []
        progress = attrs.evolve(progress, gaps=[*progress.gaps[:-1], *rest])
        await self._explain(roles, progress)
        return progress

    async def _read(
        self, first: int, last: int, roles: Mapping[str, str], *, least_blocks: int
    ) -> list[MinedTransfer]:
        """Return what left the addresses, and what came to those that sell nothing."""
        keys = [address for address, role in roles.items() if role != "wallet"]
        sides: list[dict[str, Addresses]] = [{"recipient": None, "sender": list(roles)}]
        if keys:
            sides.append({"recipient": keys, "sender": None})
        found: dict[tuple[str, int], MinedTransfer] = {}
        for number, side in enumerate(sides):
            is_last = number == len(sides) - 1
            began = time.monotonic()
            async for end, transfers in transfer_pieces(
                self._chain, first, last, **side, least_blocks=least_blocks
            ):
                found |= {_place(one): one for one in transfers}
                if end < last or not is_last:
                    await asyncio.sleep(self._pause_after(time.monotonic() - began))
                began = time.monotonic()
        return list(found.values())

    def _pause_after(self, took_s: float) -> float:
        return min(max(self.pause_s, took_s), _MAX_PAUSE_S) if self.pause_s else 0.0

    async def _explain(self, roles: Mapping[str, str], progress: Progress | None = None) -> None:
        """Drop the explained, and the smallest of too many; show and store the rest."""
        stored = {one.address: one.role for one in self._rows.values()}
        born_block = (progress or self._progress or _NOTHING).born_block
        found = await self._store.sum(
            _find_open, [*self._safe, *self._fresh], stored | dict(roles), born_block
        )
        found.sort(key=lambda one: -one.transfer.amount_units)
        kept = [one for one in found if one.is_out][:_MAX_OUT]
        kept += [one for one in found if not one.is_out][:_MAX_IN]
        self._shown = sorted(kept, key=lambda one: -one.transfer.block_number)
        self._publish()
        fresh = {_place(one) for one in self._fresh}
        self._safe = [
            one.movement.transfer for one in self.known if one.movement.place not in fresh
        ]
        if progress is not None:
            await self._save(progress)

    async def _save(self, progress: Progress) -> None:
        safe = {_place(one) for one in self._safe}
        rows = {
            one.movement.place: OpenRow(
                transfer=one.movement.transfer,
                address=one.movement.address,
                role=one.movement.role,
                at=one.at,
            )
            for one in self.known
            if one.movement.place in safe
        }
        changed = [row for place, row in rows.items() if row != self._rows.get(place)]
        gone = sorted(self._rows.keys() - rows.keys())
        await self._store.write(open_movements.save, progress, changed, gone)
        self._progress, self._rows = progress, rows

    async def _find_times(self, progress: Progress) -> None:
        blocks = [one.transfer.block_number for one in self._shown]
        self._times = {number: at for number, at in self._times.items() if number in blocks}
        missing = [number for number in dict.fromkeys(blocks) if number not in self._times]
        for number in missing[:_MAX_TIMES]:
            self._times[number] = (await self._chain.block_at(number)).timestamp
        if missing:
            self._publish()
            await self._save(progress)

    def _publish(self) -> None:
        oldest = self._now() - _DAYS * 86_400
        found = [
            OpenMovement(movement=one, at=self._times.get(one.transfer.block_number))
            for one in self._shown
        ]
        self.known = [
            one for one in found if one.movement.is_out or one.at is None or one.at >= oldest
        ]


_NOTHING = Progress(addresses=(), next_block=0, read_at=0.0, born_at=0.0, born_block=0)


def _place(one: MinedTransfer) -> tuple[str, int]:
    return one.tx_hash, one.log_index


def last_restore(db: Connection) -> ActionRecord | None:
    """Return the restore by which this database was made, or None."""
    found = actions.find(db, None, 1, action="database.restore")
    return found[0] if found else None


def _find_open(
    db: Connection,
    transfers: Sequence[MinedTransfer],
    roles: Mapping[str, str],
    first_block: int,
) -> list[Movement]:
    found = explain(db, transfers, roles, first_block=first_block)
    return [one for one in found if one.kind not in EXPLAINED]
