"""The chain through JSON-RPC: typed reads of blocks, receipts, logs and the token."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from gateway.chain.decode import (
    read_block,
    read_bytes,
    read_count,
    read_event,
    read_receipt,
    read_transfer,
    read_word,
)
from gateway.chain.endpoints import Endpoint, RpcEndpoints
from gateway.chain.log_ranges import LogsTooNarrow
from gateway.chain.retries import EndpointLags, RetryTiming
from gateway.chain.shared_simulations import RETRY_S, SharedSimulations
from gateway.concurrency.shared_answers import SharedAnswer, SharedAnswers
from gateway.contracts import CallReverted
from gateway.contracts.chain import Addresses
from gateway.domain import Authorization, Block, MinedTransfer, Receipt
from gateway.domain.eip3009 import (
    AUTHORIZATION_CANCELED_TOPIC,
    AUTHORIZATION_USED_TOPIC,
    DOMAIN_SEPARATOR,
    TRANSFER_TOPIC,
    topic,
    uint,
)
from gateway.errors import ChainUnavailable
from gateway.settings import Settings

Answer = TypeVar("Answer")
_AUTHORIZATION_TOPICS = (AUTHORIZATION_USED_TOPIC, AUTHORIZATION_CANCELED_TOPIC)
# 0.001 gwei, which Base's sequencer accepts in quiet times.
_MIN_PRIORITY_WEI = 1_000_000
# Most queries per search, if an endpoint limits the blocks of each. 20 suffice for 10,000 blocks at
# 500 per query. A search for a nonce that a payment waits for may take 400: two hours of Base,
# 39,000 blocks, at 100 per query.
_FEW_QUERIES = 20
_MANY_QUERIES = 400
# Bids are twice the base fee, which rises by 2 % a second at most, in full blocks of Base.
_FEES_TTL_S = 1.0
# Base makes the next block after this time; under load, a block has the receipts of several sales.
_BLOCK_TTL_S = 0.2
_MOST_BLOCKS = 64


class Web3Chain:
    """Base, or another network of the settings. Implements `contracts.Chain`."""

    def __init__(self, settings: Settings, *, timing: RetryTiming | None = None) -> None:
        self._network = settings.chain
        self._rpc = RpcEndpoints(
            settings.rpc_urls,
            timeout_s=settings.rpc_timeout,
            checks=(self._check_chain_id, self._check_token),
            timing=timing or RetryTiming(),
        )
        self._simulations = SharedSimulations(
            self._network,
            partial(
                self._rpc.ask_in_order, is_final=lambda passed: passed is not None, within_s=RETRY_S
            ),
        )
        self._fees: SharedAnswer[tuple[int, int]] = SharedAnswer(time.monotonic, ttl_s=_FEES_TTL_S)
        # By endpoint, number and hash. A block that lacks a receipt is never kept.
        self._blocks: SharedAnswers[Any] = SharedAnswers(
            time.monotonic, ttl_s=_BLOCK_TTL_S, most=_MOST_BLOCKS
        )

    async def start(self) -> None:
        """Connect, and check the first endpoint that responds."""
        await self.head()

    async def close(self) -> None:
        await self._simulations.close()
        await self._rpc.close()

    async def renew(self) -> None:
        await self._rpc.renew()

    async def _check_chain_id(self, endpoint: Endpoint) -> None:
        chain_id, expected = int(await endpoint.request("eth_chainId"), 16), self._network.chain_id
        if chain_id != expected:
            raise ChainUnavailable(
                f"RPC endpoint {endpoint.place} is of chain {chain_id}, not of chain {expected}"
            )

    async def _check_token(self, endpoint: Endpoint) -> None:
        network = self._network
        try:
            domain = await endpoint.request(
                "eth_call", self._call_object(DOMAIN_SEPARATOR), "latest"
            )
        except CallReverted:
            domain = None
        if domain != "0x" + network.domain_separator.hex():
            raise ChainUnavailable(
                f"RPC endpoint {endpoint.place}: {network.token} is not the expected USDC contract"
            )

    async def head(self) -> Block:
        return await self._find_block("latest")

    async def newest_head(self) -> Block:
        heads = await self._rpc.ask_all(
            lambda endpoint: _fetch_block(endpoint, "eth_getBlockByNumber", "latest")
        )
        return max(heads, key=lambda block: (block.timestamp, block.number))

    def server_time(self) -> float | None:
        """Return the middle one of the endpoints' clocks."""
        times = sorted(self._rpc.server_times())
        return times[len(times) // 2] if times else None

    async def block_at(self, number: int) -> Block:
        return await self._find_block(hex(number))

    async def block(self, block_hash: str) -> Block:
        """Return a block by its hash; it may have been reorganised away since."""
        return await self._rpc.ask_in_order(lambda endpoint: _fetch_known(endpoint, block_hash))

    async def knows_transaction(self, tx_hash: str) -> bool:
        async def ask(endpoint: Endpoint) -> bool:
            return await endpoint.request("eth_getTransactionByHash", tx_hash) is not None

        return await self._rpc.ask_in_order(ask, is_final=bool)

    async def receipt(self, tx_hash: str) -> Receipt | None:
        """Return the receipt of a mined transaction, or None if no endpoint has one.

        Receipt and block come from the same endpoint, which must have the block itself.
        """

        async def ask(endpoint: Endpoint) -> Receipt | None:
            raw = await endpoint.request("eth_getTransactionReceipt", tx_hash)
            if raw is None or raw["blockHash"] is None:
                return None
            return read_receipt(raw, await self._fetch_block_of(endpoint, raw), tx_hash)

        return await self._rpc.ask_in_order(ask, is_final=lambda receipt: receipt is not None)

    async def _fetch_block_of(self, endpoint: Endpoint, raw: Any) -> Any:
        """Return the endpoint's block with a receipt's number, as JSON."""
        number, block_hash = hex(read_count(raw["blockNumber"])), read_word(raw["blockHash"])
        try:
            return await self._blocks.get(
                f"{endpoint.place} {number} {block_hash}",
                partial(_fetch_exact_block, endpoint, number, block_hash),
            )
        except _AnotherBlock as other:
            return other.raw

    async def call(
        self,
        data: bytes,
        *,
        sender: str | None = None,
        to: str | None = None,
        gas: int | None = None,
        fees: tuple[int, int] | None = None,
    ) -> bytes:
        call = self._call_object(data, to)
        call |= {"from": sender} if sender is not None else {}
        call |= {"gas": hex(gas)} if gas is not None else {}
        if fees is not None:
            call |= {"maxFeePerGas": hex(fees[0]), "maxPriorityFeePerGas": hex(fees[1])}
        return await self._ask(read_bytes, "eth_call", call, "latest")

    async def simulate_plain(self, authorization: Authorization) -> bool:
        return await self._simulations.simulate(authorization)

    async def call_uint(self, data: bytes, *, at: Block | int | None = None) -> int:
        call = self._call_object(data)
        return await self._ask(lambda word: uint(read_bytes(word)), "eth_call", call, _where(at))

    def _call_object(self, data: bytes, to: str | None = None) -> dict[str, str]:
        return {"to": to or self._network.token, "data": "0x" + data.hex()}

    async def code(self, address: str, *, at: Block | None = None) -> bytes:
        return await self._ask(read_bytes, "eth_getCode", address, _where(at))

    async def safe_head(self) -> Block:
        return await self._find_block("safe")

    async def _find_block(self, which: str) -> Block:
        return await self._rpc.ask_in_order(
            lambda endpoint: _fetch_block(endpoint, "eth_getBlockByNumber", which)
        )

    async def transfer_logs(
        self,
        recipient: Addresses,
        *,
        sender: Addresses = None,
        from_block: int,
        to_block: int,
    ) -> list[MinedTransfer]:
        query = {
            "address": self._network.token,
            "topics": [
                TRANSFER_TOPIC,
                _topics_of(sender),
                _topics_of(recipient),
            ],
        }

        async def ask(endpoint: Endpoint) -> list[MinedTransfer]:
            found = await endpoint.logs.read(
                endpoint.request,
                query,
                first=from_block,
                last=to_block,
                most_queries=_FEW_QUERIES,
            )
            return [read_transfer(log) for log in found]

        return await self._rpc.ask_in_order(ask)

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
        topics = [[*_AUTHORIZATION_TOPICS], topic(sender), nonce]
        query = {"address": self._network.token, "topics": topics}

        async def ask(endpoint: Endpoint, most_queries: int) -> list[tuple[str, bool]]:
            # Raises at an endpoint that lags behind, so that the next one is asked.
            await _fetch_known(endpoint, known.hash)
            is_long = most_queries == _MANY_QUERIES
            found = await (endpoint.logs.read_long if is_long else endpoint.logs.read)(
                endpoint.request,
                query,
                first=max(from_block, 0),
                last=to_block,
                most_queries=most_queries,
                until_found=True,
            )
            return [read_event(log) for log in found]

        try:
            return await self._rpc.ask_until_found(partial(ask, most_queries=_FEW_QUERIES))
        except LogsTooNarrow:
            if not is_patient:
                raise
            return await self._rpc.ask_until_found(partial(ask, most_queries=_MANY_QUERIES))

    async def authorization_receipts(
        self, sender: str, nonce: str, *, number: int
    ) -> list[tuple[str, bool]]:
        async def ask(endpoint: Endpoint) -> list[tuple[str, bool]]:
            receipts = await endpoint.request("eth_getBlockReceipts", hex(number))
            logs = [log for receipt in receipts for log in receipt["logs"]]
            return [read_event(log) for log in logs if self._is_of_nonce(log, sender, nonce)]

        return await self._rpc.ask_until_found(ask)

    def _is_of_nonce(self, log: Any, sender: str, nonce: str) -> bool:
        topics = [read_word(part) for part in log["topics"]]
        is_event = topics[:1] != [] and topics[0] in _AUTHORIZATION_TOPICS
        is_ours = log["address"].lower() == self._network.token
        return is_ours and is_event and topics[1:] == [topic(sender), nonce]

    def logs_limit(self) -> int | None:
        """Return the smallest block limit of log queries of all endpoints; None without one."""
        return self._rpc.logs_limit()

    async def gas_balance(self, address: str) -> int:
        return await self._ask(_read_number, "eth_getBalance", address, "latest")

    async def transaction_count(self, address: str, *, at: Block | None = None) -> int:
        return await self._ask(_read_number, "eth_getTransactionCount", address, _where(at))

    async def fees(self) -> tuple[int, int]:
        """Return (base fee of the newest block, priority fee to bid), in wei per gas.

        Cached for one second.
        """
        return await self._fees.get(self._ask_fees)

    async def _ask_fees(self) -> tuple[int, int]:
        # Retried separately: if half of all calls are refused, only a quarter of pairs succeed.
        base_fee, priority = await asyncio.gather(
            self._ask(_read_base_fee, "eth_getBlockByNumber", "latest", False),  # noqa: FBT003 - JSON-RPC
            self._ask(_read_number, "eth_maxPriorityFeePerGas"),
        )
        return base_fee, max(priority, _MIN_PRIORITY_WEI)

    async def send(self, raw: bytes) -> None:
        """Broadcast to every endpoint; a known or mined transaction counts as sent."""

        async def ask(endpoint: Endpoint) -> None:
            try:
                read_word(await endpoint.request("eth_sendRawTransaction", "0x" + raw.hex()))
            except ChainUnavailable as error:
                if not _is_known(error.details):
                    raise

        # An endpoint may simulate the transaction and refuse it. The receipt decides.
        with contextlib.suppress(CallReverted):
            await self._rpc.ask_everywhere(ask)

    async def _ask(self, read: Callable[[Any], Answer], method: str, *params: Any) -> Answer:
        async def ask(endpoint: Endpoint) -> Answer:
            return read(await endpoint.request(method, *params))

        return await self._rpc.ask_in_order(ask)


def _topics_of(addresses: Addresses) -> str | list[str] | None:
    """Return addresses as one position of a log filter."""
    if addresses is None or isinstance(addresses, str):
        return None if addresses is None else topic(addresses)
    return [topic(one) for one in addresses]


def _read_number(value: str) -> int:
    return int(value, 16)


def _read_base_fee(block: Any) -> int:
    return int(block["baseFeePerGas"], 16)


def _where(block: Block | int | None) -> Any:
    """Return the block parameter of a read (EIP-1898)."""
    if isinstance(block, int):
        return hex(block)
    return "latest" if block is None else {"blockHash": block.hash}


def _is_known(details: str | None) -> bool:
    """Whether a broadcast was refused because the nonce or transaction is already known."""
    message = (details or "").lower()
    known = ("already known", "nonce too low", "already imported")
    return any(text in message for text in known)


async def _fetch_block(endpoint: Endpoint, method: str, which: str) -> Block:
    raw = await endpoint.request(method, which, False)  # noqa: FBT003 - JSON-RPC
    if raw is None:
        error = EndpointLags if which.startswith("0x") else ChainUnavailable
        raise error(f"RPC endpoint {endpoint.place} does not know block {which}")
    block = read_block(raw)
    is_by_number = method == "eth_getBlockByNumber" and which.startswith("0x")
    if is_by_number and block.number != int(which, 16):
        # A search by time would never end on an endpoint that always answers with the same block.
        raise EndpointLags(f"RPC endpoint {endpoint.place} answers with another block than {which}")
    return block


class _AnotherBlock(Exception):
    """The endpoint has no block of a number, or one with another hash, as `raw`."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self.raw = raw


async def _fetch_exact_block(endpoint: Endpoint, number: str, block_hash: str) -> Any:
    """Return a block as JSON; raises `_AnotherBlock`, and `ValueError` for a malformed one."""
    raw = await endpoint.request("eth_getBlockByNumber", number, False)  # noqa: FBT003 - JSON-RPC
    if raw is None or read_word(raw["hash"]) != block_hash:
        raise _AnotherBlock(raw)
    read_block(raw)
    return raw


async def _fetch_known(endpoint: Endpoint, block_hash: str) -> Block:
    """Return a block by its hash; raises `ChainUnavailable` if the response has another block."""
    block = await _fetch_block(endpoint, "eth_getBlockByHash", block_hash)
    if block.hash != block_hash.lower():
        raise ChainUnavailable(f"RPC endpoint {endpoint.place} answers with another block")
    return block
