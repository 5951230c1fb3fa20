"""Receipts of mined transactions, each with its canonical block, from one endpoint.

Receipts that are read at once share calls: the first is asked for alone. If many wait for that
answer, the receipts of its whole block are asked for, where the endpoint offers them
(`eth_getBlockReceipts`). However a receipt came, it counts only if its hash is the one asked for,
and its block is the endpoint's block with that number.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import attrs
import structlog

from gateway.chain import decode
from gateway.concurrency.shared_answers import SharedAnswers
from gateway.domain import Receipt
from gateway.errors import ChainUnavailable

# Base makes the next block after this time; under load, a block has the receipts of several sales.
_BLOCK_TTL_S = 0.2
_MOST_BLOCKS = 64
# Lists of receipts that are kept. One of a full block of Base has a few hundred.
_MOST_LISTS = 4
# Fewer waiting receipts are cheaper one by one: vendors bill a list like several calls.
_MANY = 3
# Each round reads the receipts of one block at most.
_ROUNDS = 2
# How long an endpoint that did not return the receipts of a block is not asked for any.
_LACKING_S = 600.0
_log = structlog.get_logger()


class Asks(Protocol):
    """An endpoint, as `endpoints.Endpoint`."""

    place: int

    async def request(self, method: str, *params: Any) -> Any:
        """Return a call's result; raises `ChainUnavailable`."""
        ...


@attrs.define(eq=False)
class _First:
    """A receipt that is asked for alone. Its block, as (number, hash), is for those that wait."""

    block: asyncio.Future[tuple[str, str] | None]
    waiting: int = 0


class Receipts:
    """Reads receipts by transaction hash."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` is a steady clock."""
        self._now = now
        # By endpoint, number and hash. A block that lacks a receipt is never kept.
        self._blocks: SharedAnswers[Any] = SharedAnswers(now, ttl_s=_BLOCK_TTL_S, most=_MOST_BLOCKS)
        self._lists: SharedAnswers[Mapping[str, Any]] = SharedAnswers(
            now, ttl_s=_BLOCK_TTL_S, most=_MOST_LISTS
        )
        # By endpoint.
        self._firsts: dict[int, _First] = {}
        self._lacking_until: dict[int, float] = {}

    async def read(self, endpoint: Asks, tx_hash: str) -> Receipt | None:
        """Return a receipt whose block the endpoint has, or None. Raises `ChainUnavailable`."""
        raw = await self._read_raw(endpoint, tx_hash)
        if raw is None or raw["blockHash"] is None:
            return None
        return decode.read_receipt(raw, await self._fetch_block_of(endpoint, raw), tx_hash)

    async def _read_raw(self, endpoint: Asks, tx_hash: str) -> Any:
        for _ in range(_ROUNDS):
            if self._now() < self._lacking_until.get(endpoint.place, 0.0):
                break
            first = self._firsts.get(endpoint.place)
            if first is None:
                return await self._ask_first(endpoint, tx_hash)
            first.waiting += 1
            block = await asyncio.shield(first.block)
            if block is None or first.waiting < _MANY:
                break
            key = " ".join([str(endpoint.place), *block])
            found = await self._lists.get(key, partial(self._fetch_list, endpoint, *block))
            if tx_hash in found:
                return found[tx_hash]
        return await _ask_alone(endpoint, tx_hash)

    async def _ask_first(self, endpoint: Asks, tx_hash: str) -> Any:
        first = _First(asyncio.get_running_loop().create_future())
        self._firsts[endpoint.place] = first
        block = None
        try:
            raw = await _ask_alone(endpoint, tx_hash)
            if raw is not None and raw["blockHash"] is not None:
                block = _block_of(raw)
            return raw
        finally:
            del self._firsts[endpoint.place]
            first.block.set_result(block)

    async def _fetch_list(self, endpoint: Asks, number: str, block_hash: str) -> Mapping[str, Any]:
        """Return the receipts of a block by transaction; none if the endpoint does not offer it."""
        try:
            raws = await endpoint.request("eth_getBlockReceipts", number) or ()
            return {
                decode.read_word(raw["transactionHash"]): raw
                for raw in raws
                if decode.read_word(raw["blockHash"]) == block_hash
            }
        except (ChainUnavailable, KeyError, TypeError, ValueError, AttributeError):
            self._lacking_until[endpoint.place] = self._now() + _LACKING_S
            _log.info("rpc.no_block_receipts", endpoint=endpoint.place)
            return {}

    async def _fetch_block_of(self, endpoint: Asks, raw: Any) -> Any:
        """Return the endpoint's block with a receipt's number, as JSON."""
        number, block_hash = _block_of(raw)
        try:
            return await self._blocks.get(
                f"{endpoint.place} {number} {block_hash}",
                partial(_fetch_exact_block, endpoint, number, block_hash),
            )
        except _AnotherBlock as other:
            return other.raw


async def _ask_alone(endpoint: Asks, tx_hash: str) -> Any:
    return await endpoint.request("eth_getTransactionReceipt", tx_hash)


def _block_of(raw: Any) -> tuple[str, str]:
    """Return number and hash of a receipt's block."""
    return hex(decode.read_count(raw["blockNumber"])), decode.read_word(raw["blockHash"])


class _AnotherBlock(Exception):
    """The endpoint has no block of a number, or one with another hash, as `raw`."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self.raw = raw


async def _fetch_exact_block(endpoint: Asks, number: str, block_hash: str) -> Any:
    """Return a block as JSON; raises `_AnotherBlock`, and `ValueError` for a malformed one."""
    raw = await endpoint.request("eth_getBlockByNumber", number, False)  # noqa: FBT003 - JSON-RPC
    if raw is None or decode.read_word(raw["hash"]) != block_hash:
        raise _AnotherBlock(raw)
    decode.read_block(raw)
    return raw
