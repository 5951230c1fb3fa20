"""The chain as a gateway sees it: several endpoints that lag, fail, and lose transactions.

Implements `contracts.Chain` with the fail-over rules of `Web3Chain`: the first endpoint with a
result wins; None is believed only if an endpoint responded.
"""

import random
from collections.abc import Callable
from typing import Any

import attrs

from gateway import Authorization, Block, CallReverted, ChainUnavailable, Receipt
from gateway.chain import decode
from gateway.chain.transactions import MULTICALL3
from gateway.contracts.chain import Addresses
from gateway.domain import Log, MinedTransfer
from gateway.domain.eip3009 import (
    AUTHORIZATION_CANCELED_TOPIC,
    AUTHORIZATION_USED_TOPIC,
    topic,
    uint,
)
from tests.proof.simulation.blocks import MinedBlock, decode_raw, number_of
from tests.proof.simulation.chain import SimulatedChain, Underpriced
from tests.proof.simulation.shared_calls import share_simulations
from tests.proof.simulation.world import World

_SAFE_S = 16.0  # until the network calls a block safe
_LAGS_S = (0.2, 0.2, 0.6, 2.0, 4.0, 10.0)  # of an endpoint behind
_LOGS_BEHIND_S = 8.0
_LAGGING_LOGS = 0.2  # of the endpoints index logs late, as some vendors do


@attrs.frozen
class Vendor:
    """The limits that an endpoint has in every weather."""

    kept_states: int | None  # of its newest blocks; None: of all
    log_lag_s: float  # until the logs of a block can be searched

    @classmethod
    def draw(cls, seed: int, place: int) -> "Vendor":
        """Return an endpoint's limits, drawn by its own random generator."""
        dice = random.Random(f"vendor {seed} {place}")
        return cls(
            kept_states=dice.choice((None, None, None, 128)),
            log_lag_s=dice.uniform(1.0, 180.0) if dice.random() < _LAGGING_LOGS else 0.0,
        )


_NO_RECEIPTS = 0.7  # how often an endpoint has no receipts of whole blocks


class Node:
    """One endpoint: its newest block may be old, or a replaced one."""

    def __init__(self, place: int, chain: SimulatedChain, world: World) -> None:
        self._vendor = Vendor.draw(world.seed, place)
        self._place = place
        self._chain = chain
        self._world = world

    def tip(self) -> MinedBlock:
        """Return the newest block that this endpoint knows now."""
        world, chain = self._world, self._chain
        newest = number = chain.stuck.get(self._place, chain.head_number)
        if world.strikes(world.odds.lag, "endpoint behind"):
            number = min(chain.number_before(world.dice.choice(_LAGS_S)), newest)
            orphan = next(reversed(chain.orphans.values()), None)
            is_there = orphan is not None and number <= orphan.number <= newest
            if is_there and world.strikes(0.5, "replaced block shown"):
                return orphan
        return chain.at(number)

    def find(self, block_hash: str) -> MinedBlock:
        """Return a block by hash. Raises `ChainUnavailable` if it is not known here yet."""
        return self._find(block_hash, self.tip())

    def _find(self, block_hash: str, tip: MinedBlock) -> MinedBlock:
        number = number_of(block_hash)
        if number <= tip.number:
            for block in (self._chain.at(number), self._chain.orphans.get(number)):
                if block is not None and block.hash == block_hash:
                    return block
        raise ChainUnavailable("unknown block")

    def numbered(self, number: int) -> MinedBlock | None:
        """Return the block of a number in this endpoint's chain; None above its newest block."""
        return self._numbered(number, self.tip())

    def _numbered(self, number: int, tip: MinedBlock) -> MinedBlock | None:
        if number >= tip.number:
            return tip if number == tip.number else None
        return self._chain.at(number)

    def state_of(self, at: Block | int | None) -> MinedBlock:
        """Return a block whose state is read. Raises `ChainUnavailable` if it is gone here."""
        tip = self.tip()
        if at is None:
            return tip
        block = self._numbered(at, tip) if isinstance(at, int) else self._find(at.hash, tip)
        if block is None:
            raise ChainUnavailable("unknown block")
        kept = self._vendor.kept_states
        if kept is not None and block.number <= tip.number - kept:
            self._world.faults["state of an old block gone"] += 1
            raise ChainUnavailable("missing trie node")
        return block

    def indexed(self) -> int:
        """Return the newest block whose logs can be searched here."""
        world, lag_s = self._world, self._vendor.log_lag_s
        world.faults["log index late"] += bool(lag_s)
        if world.strikes(world.odds.lag / 4, "logs behind"):
            lag_s = max(lag_s, _LOGS_BEHIND_S)
        return self._chain.number_before(lag_s)


class FaultyRpc:
    """One process's view of the chain; dead with its process."""

    def __init__(self, chain: SimulatedChain, world: World, life: Any) -> None:
        self._chain = chain
        self._world = world
        self.life = self._life = life
        self._nodes = [Node(place, chain, world) for place in range(2)]
        self._simulations = share_simulations(self._ask_shared)

    async def start(self) -> None:
        await self.head()

    async def close(self) -> None:
        self._life.check()

    async def _first(self, ask: Callable[[Node], Any]) -> Any:
        for node in self._nodes:
            try:
                return await self._one(node, ask)
            except ChainUnavailable:
                continue
        raise ChainUnavailable("The chain does not answer now.")

    async def _until_found(self, ask: Callable[[Node], list[Any]]) -> list[Any]:
        has_failed = False
        for node in self._nodes:
            try:
                if found := await self._one(node, ask):
                    return found
            except ChainUnavailable:
                has_failed = True
        if has_failed:
            raise ChainUnavailable("The chain does not answer now.")
        return []

    async def _one(self, node: Node, ask: Callable[[Node], Any]) -> Any:
        world = self._world
        await self._life.pause()
        if world.loop.time() < world.silent_until and not world.is_healed:
            raise ChainUnavailable("silent")
        if world.strikes(world.odds.rpc_error, "rpc error"):
            raise ChainUnavailable("error")
        answer = ask(node)
        await self._life.pause()
        if world.strikes(world.odds.rpc_error / 2, "rpc answer lost"):
            raise ChainUnavailable("answer lost")
        return answer

    async def head(self) -> Block:
        return await self._first(lambda node: _block(node.tip()))

    async def block_at(self, number: int) -> Block:
        def ask(node: Node) -> Block:
            if number > node.tip().number:
                raise ChainUnavailable("unknown block")
            return _block(self._chain.at(number))

        return await self._first(ask)

    async def block(self, block_hash: str) -> Block:
        return await self._first(lambda node: _block(node.find(block_hash)))

    async def newest_head(self) -> Block:
        heads = []
        for node in self._nodes:
            try:
                heads.append(await self._one(node, lambda node: _block(node.tip())))
            except ChainUnavailable:
                continue
        if not heads:
            raise ChainUnavailable("silent")
        return max(heads, key=lambda block: block.number)

    def server_time(self) -> None:
        return None

    async def knows_transaction(self, tx_hash: str) -> bool:
        """Return whether a transaction is in a block or the mempool, unless it was lost."""

        def ask(node: Node) -> bool:
            is_pending = any(one.hash == tx_hash for one in self._chain.pending)
            return is_pending or tx_hash in node.tip().state.mined

        answers = []
        for node in self._nodes:
            try:
                answers.append(await self._one(node, ask))
            except ChainUnavailable:
                continue
        if not answers:
            raise ChainUnavailable("silent")
        return any(answers)

    async def receipt(self, tx_hash: str) -> Receipt | None:
        answered = False
        for node in self._nodes:
            try:
                found = await self._read_receipt(node, tx_hash)
            except ChainUnavailable:
                continue
            answered = True
            if found is not None:
                if self._world.strikes(self._world.odds.rpc_error / 4, "receipt without status"):
                    continue  # the adapter passes over it, as over silence
                return found
        if not answered:
            raise ChainUnavailable("silent")
        return None

    async def _read_receipt(self, node: Node, tx_hash: str) -> Receipt | None:
        """Request a receipt and the block of its number, as `Web3Chain` does."""
        shown = await self._one(node, lambda node: self._show_receipt(node, tx_hash))
        if shown is None:
            return None
        block = await self._one(node, lambda node: node.numbered(shown.block.number))
        return decode.read_receipt(_raw_receipt(shown), _raw_block(block), tx_hash)

    def _show_receipt(self, node: Node, tx_hash: str) -> Receipt | None:
        mined = node.tip().state.mined.get(tx_hash)
        if mined is not None or not self._world.preconfirmed:
            return mined
        for waiting in self._chain.pending:
            is_it = waiting.hash == tx_hash
            if is_it and self._world.strikes(self._world.preconfirmed, "receipt before its block"):
                return self._chain.preconfirm(waiting)
        return None

    async def call(
        self,
        data: bytes,
        *,
        sender: str | None = None,
        to: str | None = None,
        gas: int | None = None,
        fees: tuple[int, int] | None = None,
    ) -> bytes:
        def ask(node: Node) -> bytes:
            tip = node.tip()
            priced = fees is not None
            return self._chain.token.view(data, tip.state, tip.timestamp, priced=priced)

        return await self._first(ask)

    async def simulate_plain(self, authorization: Authorization) -> bool:
        return await self._simulations.simulate(authorization)

    async def _ask_shared(self, calls: list[bytes]) -> bytes:
        token, first = self._chain.token, self._nodes[0]
        return await self._one(first, lambda node: token.view_shared(calls, node.tip()))

    async def call_uint(self, data: bytes, *, at: Block | int | None = None) -> int:
        def ask(node: Node) -> int:
            shown = node.state_of(at)
            return uint(self._chain.token.view(data, shown.state, shown.timestamp))

        return await self._first(ask)

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
        def ask(node: Node) -> list[tuple[str, bool]]:
            newest = min(node.find(known.hash).number, to_block, node.indexed())
            return self._events(sender, nonce, from_block, newest)

        return await self._until_found(ask)

    async def authorization_receipts(
        self, sender: str, nonce: str, *, number: int
    ) -> list[tuple[str, bool]]:
        def ask(node: Node) -> list[tuple[str, bool]]:
            if self._world.strikes(_NO_RECEIPTS, "no receipts of blocks"):
                raise ChainUnavailable("the method does not exist")
            return self._events(sender, nonce, number, min(number, node.tip().number))

        return await self._until_found(ask)

    def _events(self, sender: str, nonce: str, first: int, last: int) -> list[tuple[str, bool]]:
        who = topic(sender)
        return [
            (receipt.tx_hash, log.topics[0] == AUTHORIZATION_USED_TOPIC)
            for receipt in self._chain.head.state.mined.values()
            if first <= receipt.block_number <= last
            for log in receipt.logs
            if _is_of_nonce(log, who, nonce)
        ]

    async def code(self, address: str, *, at: Block | None = None) -> bytes:
        def ask(node: Node) -> bytes:
            is_contract = self._chain.token.has_code(address, node.state_of(at).state)
            return b"\x5b" if is_contract or address == MULTICALL3 else b""

        return await self._first(ask)

    async def safe_head(self) -> Block:
        def ask(node: Node) -> Block:
            safe = self._chain.number_before(_SAFE_S)
            return _block(self._chain.at(min(safe, node.tip().number)))

        return await self._first(ask)

    async def transfer_logs(
        self, recipient: Addresses, *, sender: Addresses = None, from_block: int, to_block: int
    ) -> list[MinedTransfer]:
        raise ChainUnavailable("only reports ask for this")

    async def gas_balance(self, address: str) -> int:
        return await self._first(lambda node: self._chain.gas_money)

    async def transaction_count(self, address: str, *, at: Block | None = None) -> int:
        def ask(node: Node) -> int:
            shown = node.state_of(at)
            return shown.state.counts.get(address, 0)

        return await self._first(ask)

    async def fees(self) -> tuple[int, int]:
        return await self._first(lambda node: (self._chain.base_fee, 10**6))

    async def send(self, raw: bytes) -> None:
        transaction = decode_raw(raw)

        def ask(node: Node) -> None:
            if self._world.strikes(self._world.odds.send_swallowed, "transaction swallowed"):
                return
            try:
                self._chain.add(transaction, "gateway")
            except Underpriced:
                raise ChainUnavailable("replacement transaction underpriced") from None

        try:
            await self._first(ask)
        except CallReverted:
            return
        await self._life.crash_point("broadcast, its answer not seen")


def _block(block: MinedBlock) -> Block:
    return Block(number=block.number, hash=block.hash, timestamp=block.timestamp)


def _raw_block(block: MinedBlock | None) -> dict[str, str] | None:
    if block is None:
        return None
    return {"number": hex(block.number), "hash": block.hash, "timestamp": hex(block.timestamp)}


def _raw_receipt(receipt: Receipt) -> dict[str, Any]:
    """Convert a receipt to JSON-RPC, for production's parser."""
    logs = [
        {
            "address": log.address,
            "topics": log.topics,
            "data": log.data.hex(),
            "logIndex": hex(log.index),
        }
        for log in receipt.logs
    ]
    return {
        "transactionHash": receipt.tx_hash,
        "status": hex(receipt.succeeded),
        "blockHash": receipt.block.hash,
        "gasUsed": None if receipt.gas_used is None else hex(receipt.gas_used),
        "effectiveGasPrice": hex((receipt.fee_wei or 0) // (receipt.gas_used or 1)),
        "logs": logs,
    }


def _is_of_nonce(log: Log, who: str, nonce: str) -> bool:
    return (
        log.topics[0] in (AUTHORIZATION_USED_TOPIC, AUTHORIZATION_CANCELED_TOPIC)
        and log.topics[1] == who
        and log.topics[2] == nonce
    )
