"""The filter of `eth_getLogs`."""

from __future__ import annotations

from typing import Any

import attrs

from gateway_demo.chain import json_values as chain_json
from gateway_demo.chain import params as chain_params
from gateway_demo.chain.evm import Block
from gateway_demo.chain.faults import INVALID_PARAMS, RpcFault
from gateway_demo.chain.node import BlockHash, Node


@attrs.frozen(kw_only=True)
class LogFilter:
    """A query's addresses and topics by position. An empty set matches everything."""

    addresses: frozenset[bytes]
    topics: tuple[frozenset[bytes], ...]

    def matches(self, log: chain_json.Json) -> bool:
        """Whether a log, as JSON, matches."""
        if self.addresses and chain_params.data(log["address"]) not in self.addresses:
            return False
        found = [chain_params.data(topic) for topic in log["topics"]]
        if len(self.topics) > len(found):
            return False
        pairs = zip(self.topics, found, strict=False)
        return all(not wanted or topic in wanted for wanted, topic in pairs)


def find_logs(node: Node, query: Any) -> list[chain_json.Json]:
    """Return the logs of `eth_getLogs`: by `blockHash`, or `fromBlock` to `toBlock` (latest)."""
    if not isinstance(query, dict):
        raise RpcFault("invalid argument 0: a filter object is wanted", code=INVALID_PARAMS)
    wanted = _read_filter(query)
    return [
        log
        for block in _find_blocks(node, query)
        for done in block.executed
        for log in chain_json.logs(block, done)
        if wanted.matches(log)
    ]


def _read_filter(query: dict[str, Any]) -> LogFilter:
    addresses = _read_set(query.get("address"), chain_params.ADDRESS_BYTES)
    topics = query.get("topics") or []
    if not isinstance(topics, list):
        raise RpcFault("invalid argument 0: topics must be a list", code=INVALID_PARAMS)
    sets = tuple(_read_set(topic, chain_params.HASH_BYTES) for topic in topics)
    return LogFilter(addresses=addresses, topics=sets)


def _read_set(value: Any, size: int) -> frozenset[bytes]:
    if value is None:
        return frozenset()
    values = value if isinstance(value, list) else [value]
    if None in values:
        # A null among the alternatives matches everything.
        return frozenset()
    return frozenset(chain_params.fixed(item, size) for item in values)


def _find_blocks(node: Node, query: dict[str, Any]) -> list[Block]:
    first, last = query.get("fromBlock"), query.get("toBlock")
    if query.get("blockHash") is None:
        return _find_range(
            node, "latest" if first is None else first, "latest" if last is None else last
        )
    if first is not None or last is not None:
        raise RpcFault(
            "invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, "
            "choose one or the other",
            code=INVALID_PARAMS,
        )
    value = chain_params.fixed(query["blockHash"], chain_params.HASH_BYTES)
    block = node.find(BlockHash(value=value))
    if block is None:
        raise RpcFault("unknown block")
    return [block]


def _find_range(node: Node, first: Any, last: Any) -> list[Block]:
    begin, end = (_find_number(node, value) for value in (first, last))
    if begin > end and begin <= node.head.number:
        raise RpcFault("invalid block range params", code=INVALID_PARAMS)
    return node.with_transactions(begin, end)


def _find_number(node: Node, value: Any) -> int:
    ref = chain_params.block_ref(value)
    if isinstance(ref, int):
        return ref
    if ref == "pending":
        # Pending transactions have no logs.
        return node.head.number
    return node.at(ref).number
