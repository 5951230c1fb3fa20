"""Watches USDC that leaves the gateway's addresses, or comes to its keys, without a record."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from gateway.chain.block_times import first_block_since
from gateway.chain.keys import address_of, load_settlement_keys
from gateway.contracts import Chain, Clock
from gateway.contracts.chain import Addresses
from gateway.domain import Block, MinedTransfer
from gateway.settings import Settings
from gateway.store import SqlStore
from gateway.store.sql import Connection
from gateway_operator.audit_log import ActionRecord
from gateway_operator.background_search import BackgroundSearch
from gateway_operator.sql import actions, ledger
from gateway_operator.sql.movements import EXPLAINED, Movement, explain
from gateway_operator.transfer_search import transfer_pieces

# A search result is fresh for this many seconds, so that a theft is known within two minutes.
_TTL_S = 25.0
_DAYS = 7.0
# The newest blocks are read first: 33 minutes of Base. Of older ones, each search reads so many
# pieces of this size, and pauses after each, because sales need the same endpoint.
_PIECE_BLOCKS = 10_000
_PIECES = 10
_PAUSE_S = 0.5
# Anyone can send dust to an address, so only this many of the largest transfers are kept, and the
# times of so few blocks are read in a search.
_MAX_KEPT = 200
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
    reorganised transfer disappears. A search makes at most 2 log queries for the newest blocks, 20
    for older ones, and reads the times of 20 blocks.
    """

    name = "movement-search"
    ttl_s = _TTL_S

    def __init__(
        self, chain: Chain, store: SqlStore, roles: Callable[[], Mapping[str, str]], now: Clock
    ) -> None:
        super().__init__(chain, store, now)
        self._roles = roles
        self.pause_s = _PAUSE_S
        self._shown: Sequence[Movement] = ()
        # Newest first.
        self.known: Sequence[OpenMovement] = ()
        # The first block that this database knows of.
        self._born_block = 0
        # The first block to read next; None: no search has begun. Ranges of older blocks to read,
        # the newest last.
        self._next: int | None = None
        self._gaps: list[tuple[int, int]] = []
        # Not explained, in safe blocks and in newer ones.
        self._safe: Sequence[MinedTransfer] = ()
        self._fresh: Sequence[MinedTransfer] = ()
        self._times: dict[int, float] = {}

    @property
    def is_complete(self) -> bool:
        """Whether all blocks of the period were read."""
        return self._next is not None and not self._gaps

    async def _advance(self) -> None:
        safe, head = await self._chain.safe_head(), await self._chain.head()
        roles = await with_earlier_keys(self._store, self._roles())
        begin = await self._begin(head) if self._next is None else self._next
        first = max(begin, head.number - _PIECE_BLOCKS + 1)
        newest = await self._read(first, head.number, roles)
        self._safe = [*self._safe, *(one for one in newest if one.block_number <= safe.number)]
        self._fresh = [one for one in newest if one.block_number > safe.number]
        if begin < first:
            self._gaps.append((begin, min(first - 1, safe.number)))
        self._next = max(begin, safe.number + 1)
        await self._explain(roles)
        if self._gaps:
            await self._fill_gaps(roles)
            await self._explain(roles)
        await self._find_times()

    async def _begin(self, head: Block) -> int:
        """Return the first block to search: a week ago, or the database's first.

        The records of a restored database begin before it was made.
        """
        since = self._now() - _DAYS * 86_400
        born_at = float(await self._store.known_meta("born_at") or 0)
        self._born_block = await first_block_since(self._chain, max(born_at, since), head=head)
        if await self._store.sum(last_restore) is None:
            return self._born_block
        return await first_block_since(self._chain, since, head=head)

    async def _read(self, first: int, last: int, roles: Mapping[str, str]) -> list[MinedTransfer]:
        """Return what left the addresses, and what came to those that sell nothing."""
        keys = [address for address, role in roles.items() if role != "wallet"]
        found = await self._read_side(first, last, sender=list(roles))
        if keys:
            found += await self._read_side(first, last, recipient=keys)
        return list({(one.tx_hash, one.log_index): one for one in found}.values())

    async def _read_side(
        self, first: int, last: int, *, recipient: Addresses = None, sender: Addresses = None
    ) -> list[MinedTransfer]:
        pieces = transfer_pieces(self._chain, first, last, recipient=recipient, sender=sender)
        return [transfer async for _, transfers in pieces for transfer in transfers]

    async def _fill_gaps(self, roles: Mapping[str, str]) -> None:
        for _ in range(_PIECES):
            if not self._gaps:
                return
            await asyncio.sleep(self.pause_s)
            first, last = self._gaps[-1]
            begin = max(first, last - _PIECE_BLOCKS + 1)
            self._safe = [*self._safe, *await self._read(begin, last, roles)]
            self._gaps[-1:] = [(first, begin - 1)] if first < begin else []

    async def _explain(self, roles: Mapping[str, str]) -> None:
        """Drop what is explained by now, and the smallest of too many."""
        found = await self._store.sum(
            _find_open, [*self._safe, *self._fresh], roles, self._born_block
        )
        found.sort(key=lambda one: (one.is_out, one.transfer.amount_units), reverse=True)
        kept = sorted(found[:_MAX_KEPT], key=lambda one: -one.transfer.block_number)
        fresh = set(self._fresh)
        self._safe = [one.transfer for one in kept if one.transfer not in fresh]
        self._shown = kept
        self._publish()

    async def _find_times(self) -> None:
        blocks = [one.transfer.block_number for one in self._shown]
        self._times = {number: at for number, at in self._times.items() if number in blocks}
        missing = [number for number in dict.fromkeys(blocks) if number not in self._times]
        for number in missing[:_MAX_TIMES]:
            self._times[number] = (await self._chain.block_at(number)).timestamp
        self._publish()

    def _publish(self) -> None:
        oldest = self._now() - _DAYS * 86_400
        found = [
            OpenMovement(movement=one, at=self._times.get(one.transfer.block_number))
            for one in self._shown
        ]
        self.known = [one for one in found if one.at is None or one.at >= oldest]


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
