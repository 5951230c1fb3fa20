"""A chain of any pace, whose endpoint may lack old state, lag in its logs, or limit their range."""

import math

import attrs

from gateway.chain.log_ranges import LogsTooNarrow
from gateway.chain.retries import StatePruned
from gateway.domain import Authorization, Block, Log, Receipt
from gateway.domain.eip3009 import (
    AUTHORIZATION_CANCELED_TOPIC,
    AUTHORIZATION_USED_TOPIC,
    BASE,
    TRANSFER_TOPIC,
    topic,
    uint,
    word,
)
from gateway.errors import ChainUnavailable

DENIM = 1_793_901_600.0
"""When the pace of Base changed, in Unix seconds."""
TX_HASH = "0x" + "7a" * 32
PACES = {
    "0.2 s": ((0.0, 0.2),),
    "2 s": ((0.0, 2.0),),
    "12 s": ((0.0, 12.0),),
    "2 s, then 0.2 s": ((0.0, 2.0), (DENIM, 0.2)),
    "0.2 s, then 2 s": ((0.0, 0.2), (DENIM, 2.0)),
}
"""By name: (from this time on, seconds between two blocks)."""


@attrs.define(kw_only=True)
class PacedChain:
    """Implements the reads of `Chain` that searches need."""

    now: float
    signed: Authorization
    paces: tuple[tuple[float, float], ...] = PACES["0.2 s"]
    has_milliseconds: bool = False
    spent_in: int | None = None
    transfer: tuple[str, int] | None = None
    """Recipient and units of the transfer that spent the nonce; None: it was cancelled."""
    kept_s: float = float("inf")
    """Seconds for which the endpoint keeps state."""
    log_lag_s: float = 0.0
    most_log_blocks: int = 10**12
    fixed_state: int | None = None
    """The state of the nonce at every block but the newest; None: the true one."""
    has_receipts: bool = False
    """Whether the endpoint offers the receipts of a block."""
    calls: dict[str, int] = attrs.field(factory=dict, init=False)
    # (first block, its time in tenths of a second, tenths between two blocks).
    _parts: list[tuple[int, int, int]] = attrs.field(init=False)

    @_parts.default
    def _make_parts(self) -> list[tuple[int, int, int]]:
        """Return the parts of a chain that began three days before `now`."""
        number, at = 0, round(10 * (self.now - 3 * 86_400))
        ends = [round(10 * since) for since, _ in self.paces[1:]]
        parts = []
        for (_, pace_s), end in zip(self.paces, [*ends, None], strict=True):
            pace = round(10 * pace_s)
            parts.append((number, at, pace))
            if end is not None:
                blocks = -(-(end - at) // pace)
                number, at = number + blocks, at + blocks * pace
        return parts

    def time_of(self, number: int) -> float:
        """Return the time of a block in Unix seconds."""
        first, at, pace = [part for part in self._parts if part[0] <= max(number, 0)][-1]
        return (at + (number - first) * pace) / 10

    def number_at(self, at: float) -> int:
        """Return the newest block up to a time."""
        tenths = math.floor(round(10 * at, 3))
        first, begin, pace = [part for part in self._parts if part[1] <= tenths][-1]
        return first + (tenths - begin) // pace

    @property
    def newest(self) -> int:
        """The number of the head."""
        return self.number_at(self.now)

    def made(self, number: int) -> Block:
        """Return a block, without a call."""
        at = self.time_of(number)
        milliseconds = round(at * 1000) if self.has_milliseconds else None
        return Block(
            number=number, hash=f"0x{number:064x}", timestamp=int(at), timestamp_ms=milliseconds
        )

    def _count(self, what: str) -> None:
        self.calls[what] = self.calls.get(what, 0) + 1

    async def head(self) -> Block:
        self._count("block")
        return self.made(self.newest)

    async def block_at(self, number: int) -> Block:
        self._count("block")
        return self.made(number)

    async def call_uint(self, data: bytes, *, at: Block | int) -> int:
        self._count("state")
        number = at if isinstance(at, int) else at.number
        if self.now - self.time_of(number) > self.kept_s:
            raise StatePruned("missing trie node")
        if self.fixed_state is not None and number < self.newest:
            return self.fixed_state
        return int(self.spent_in is not None and number >= self.spent_in)

    async def authorization_logs(
        self,
        sender: str,
        nonce: str,
        *,
        from_block: int,
        to_block: int,
        known: Block,
        is_patient: bool = True,
    ) -> list[tuple[str, bool]]:
        is_there = self.spent_in is not None and from_block <= self.spent_in <= to_block
        is_shown = is_there and self.now - self.time_of(self.spent_in) >= self.log_lag_s
        # The newest part first.
        read = to_block - (self.spent_in if is_shown else from_block) + 1
        queries = -(-read // self.most_log_blocks)
        most = 400 if is_patient else 20
        self.calls["logs"] = self.calls.get("logs", 0) + min(queries, most)
        if queries > most:
            raise LogsTooNarrow("too many queries")
        return [(TX_HASH, self.transfer is not None)] if is_shown else []

    async def authorization_receipts(
        self, sender: str, nonce: str, *, number: int
    ) -> list[tuple[str, bool]]:
        self._count("block receipts")
        if not self.has_receipts:
            raise ChainUnavailable("the method does not exist")
        return [(TX_HASH, self.transfer is not None)] if number == self.spent_in else []

    async def receipt(self, tx_hash: str) -> Receipt | None:
        self._count("receipt")
        return Receipt(
            tx_hash=TX_HASH, succeeded=True, block=self.made(self.spent_in), logs=self.logs
        )

    @property
    def logs(self) -> tuple[Log, ...]:
        """The logs of the transaction that spent the nonce."""
        spent = AUTHORIZATION_CANCELED_TOPIC if self.transfer is None else AUTHORIZATION_USED_TOPIC
        who = topic(self.signed.sender)
        event = Log(address=BASE.token, topics=(spent, who, self.signed.nonce), data=b"", index=0)
        if self.transfer is None:
            return (event,)
        recipient, units = self.transfer
        moved = Log(
            address=BASE.token,
            topics=(TRANSFER_TOPIC, who, topic(recipient)),
            data=word(units),
            index=1,
        )
        assert uint(moved.data) == units
        return event, moved
