"""The filter of `eth_getLogs`."""

from __future__ import annotations

from typing import Any

import attrs

from gateway.demo.chain import json_values as chain_json
from gateway.demo.chain import params as chain_params
from gateway.demo.chain.evm import Block
from gateway.demo.chain.faults import INVALID_PARAMS, RpcFault
from gateway.demo.chain.node import BlockHash, Node


@attrs.frozen(kw_only=True)
class LogFilter:
    """Which logs are wanted: an empty set of addresses, or of topics at a place, means any."""

    addresses: frozenset[bytes]
    topics: tuple[frozenset[bytes], ...]

    def matches(self, log: chain_json.Json) -> bool:
        """Decide about one log as JSON."""
        if self.addresses and chain_params.data(log["address"]) not in self.addresses:
            return False
        found = [chain_params.data(topic) for topic in log["topics"]]
        if len(self.topics) > len(found):
            return False
        pairs = zip(self.topics, found, strict=False)
        return all(not wanted or topic in wanted for wanted, topic in pairs)


def find_logs(node: Node, query: Any) -> list[chain_json.Json]:
    """Answer `eth_getLogs`: blocks by `blockHash`, or from `fromBlock` to `toBlock` (latest)."""
    if not isinstance(query, dict):
        raise RpcFault("invalid argument 0: a filter object is wanted", code=INVALID_PARAMS)
    wanted = _read(query)
    return [
        log
        for block in _blocks(node, query)
        for done in block.executed
        for log in chain_json.logs(block, done)
        if wanted.matches(log)
    ]


def _read(query: dict[str, Any]) -> LogFilter:
    addresses = _set(query.get("address"), chain_params.ADDRESS_BYTES)
    topics = query.get("topics") or []
    if not isinstance(topics, list):
        raise RpcFault("invalid argument 0: topics must be a list", code=INVALID_PARAMS)
    sets = tuple(_set(topic, chain_params.HASH_BYTES) for topic in topics)
    return LogFilter(addresses=addresses, topics=sets)


def _set(value: Any, size: int) -> frozenset[bytes]:
    if value is None:
        return frozenset()
    values = value if isinstance(value, list) else [value]
    if None in values:
        return frozenset()  # null among alternatives matches anything
    return frozenset(chain_params.fixed(item, size) for item in values)


def _blocks(node: Node, query: dict[str, Any]) -> list[Block]:
    first, last = query.get("fromBlock"), query.get("toBlock")
    if query.get("blockHash") is None:
        return _range(
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


def _range(node: Node, first: Any, last: Any) -> list[Block]:
    begin, end = (_number(node, value) for value in (first, last))
    if begin > end and begin <= node.head.number:
        raise RpcFault("invalid block range params", code=INVALID_PARAMS)
    return node.between(begin, end)


def _number(node: Node, value: Any) -> int:
    ref = chain_params.block_ref(value)
    if isinstance(ref, int):
        return ref
    if ref == "pending":
        return node.head.number  # what is not mined has no logs yet
    return node.at(ref).number
