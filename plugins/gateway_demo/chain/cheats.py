"""JSON-RPC methods by which tests change the chain, named as in Anvil and Hardhat."""

from __future__ import annotations

from typing import Any

import attrs

from gateway_demo.chain import json_values as chain_json
from gateway_demo.chain import params as chain_params
from gateway_demo.chain.faults import INVALID_PARAMS, RpcFault
from gateway_demo.chain.methods import Method
from gateway_demo.chain.node import Node


@attrs.frozen
class Cheats:
    """The methods; the caller holds the node's lock."""

    node: Node
    token: str

    def table(self) -> dict[str, Method]:
        """Return the methods by their JSON-RPC names."""
        return {
            "evm_mine": lambda: hex(self.node.mine().number),
            "evm_snapshot": lambda: hex(self.node.snapshot()),
            "evm_revert": lambda number: self.node.revert(chain_params.quantity(number)),
            "evm_increaseTime": self.increase_time,
            "evm_setAutomine": self.set_automine,
            "evm_setIntervalMining": self.set_pace,
            "anvil_dropTransaction": self.drop_transaction,
            "play_fund": self.fund,
        }

    def increase_time(self, seconds: Any) -> int:
        """Move the clock forward by a number of seconds, mine a block, and return the seconds."""
        count = seconds if isinstance(seconds, int) else chain_params.quantity(seconds)
        self.node.advance(count)
        return count

    def set_automine(self, on: Any) -> bool:
        """Turn automatic mining on or off."""
        self.node.set_automine(on=bool(on))
        return True

    def set_pace(self, milliseconds: Any) -> bool:
        """Change the time between blocks, from the latest block on."""
        is_number = isinstance(milliseconds, int)
        count = milliseconds if is_number else chain_params.quantity(milliseconds)
        if count <= 0:
            raise RpcFault("invalid argument 0: milliseconds above 0", code=INVALID_PARAMS)
        self.node.set_pace(count / 1000)
        return True

    def drop_transaction(self, value: Any) -> str | None:
        """Drop a pending transaction; returns its hash, or None if it is not pending."""
        key = chain_params.fixed(value, chain_params.HASH_BYTES)
        return chain_json.data(key) if self.node.pool.drop(key) else None

    def fund(self, address: Any, eth_wei: Any, usdc_units: Any) -> bool:
        """Give an account play ETH and play USDC; both amounts are hex quantities."""
        owner = chain_json.data(chain_params.address(address))
        wei, units = chain_params.quantity(eth_wei), chain_params.quantity(usdc_units)
        self.node.grant(owner, eth_wei=wei, usdc_units=units, token=self.token)
        return True
