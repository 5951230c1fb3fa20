"""Base as the gateway reads it: JSON-RPC through web3, with fail-over between endpoints."""

from gateway.chain.rpc import RpcEndpoints
from gateway.chain.web3_chain import Web3Chain

__all__ = ["RpcEndpoints", "Web3Chain"]
