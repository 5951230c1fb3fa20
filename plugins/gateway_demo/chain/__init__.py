"""The embedded chain: an EVM with play USDC at its real address, JSON-RPC, and controls for tests.

The buyer of the demo is in `gateway_demo.tour`.
"""

from gateway_demo.chain.play_chain import (
    DEFAULT_GAS,
    DEFAULT_MAX_FEE_WEI,
    FAUCET_KEY,
    MULTICALL,
    ONE_ETH,
    OTHER_TOKEN,
    PlayChain,
)

__all__ = [
    "DEFAULT_GAS",
    "DEFAULT_MAX_FEE_WEI",
    "FAUCET_KEY",
    "MULTICALL",
    "ONE_ETH",
    "OTHER_TOKEN",
    "PlayChain",
]
