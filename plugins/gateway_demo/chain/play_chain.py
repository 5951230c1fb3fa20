"""A chain with one node in this process: `with PlayChain() as chain: chain.rpc_url`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Self

from eth.abc import StateAPI
from eth.constants import CREATE_CONTRACT_ADDRESS
from eth.vm.forks.cancun.transactions import CancunTransactionBuilder
from eth_keys.datatypes import PrivateKey
from eth_utils.address import to_canonical_address
from eth_utils.crypto import keccak

from gateway_demo import token
from gateway_demo.chain import contracts as chain_contracts
from gateway_demo.chain.contracts import Contract
from gateway_demo.chain.evm import Block
from gateway_demo.chain.methods import TIP_WEI
from gateway_demo.chain.node import BLOCK_TIME_S, Node
from gateway_demo.chain.rpc import Rpc
from gateway_demo.chain.server import RpcServer

# A second token with the code of play USDC.
OTHER_TOKEN: Final = "0x00000000000000000000000000000000000F0f0F"  # noqa: S105
# The address of Multicall3 on Base.
MULTICALL: Final = "0xcA11bde05977b3631167028862bE2a173976CA11"
# The key that pays the gas for `mint`.
FAUCET_KEY: Final = keccak(text="play money faucet")
ONE_ETH: Final = 10**18  # wei
DEFAULT_GAS: Final = 500_000
DEFAULT_MAX_FEE_WEI: Final = 1_000_000_000


class PlayChain:
    """A chain with one node and its JSON-RPC server, and methods by which tests change it."""

    def __init__(
        self,
        *,
        chain_id: int = 8453,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Callable[[], float] = time.time,
        block_time_s: float = BLOCK_TIME_S,
    ) -> None:
        self.chain_id = chain_id
        self.usdc = token.USDC_ADDRESSES.get(chain_id, token.USDC_ADDRESSES[8453])
        self.node = Node.start(chain_id, clock, self._write_genesis, block_time_s=block_time_s)
        self.rpc = Rpc(self.node, self.usdc)
        self._server = RpcServer(self.rpc.answer, host=host, port=port)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the JSON-RPC server."""
        self._server.start()

    def stop(self) -> None:
        """Stop the server."""
        self._server.stop()

    @property
    def rpc_url(self) -> str:
        """The URL of the JSON-RPC server."""
        return self._server.url

    @property
    def block(self) -> Block:
        """The latest block."""
        with self.node.lock:
            return self.node.head

    def fund(self, address: str, *, eth_wei: int = ONE_ETH, usdc_units: int = 100_000_000) -> None:
        """Give an account play money, at once and without logs."""
        with self.node.lock:
            self.node.grant(address, eth_wei=eth_wei, usdc_units=usdc_units, token=self.usdc)

    def mint(self, to: str, units: int, *, asset: str | None = None) -> str:
        """Mint play USDC in a transaction; returns its hash."""
        return self.send_transaction(FAUCET_KEY, asset or self.usdc, token.mint_call(to, units))

    def transfer_usdc(self, key: bytes, to: str, units: int, *, asset: str | None = None) -> str:
        """Send a token transfer and return its hash; `asset` names another token."""
        return self.send_transaction(key, asset or self.usdc, token.transfer_call(to, units))

    def usdc_balance(self, address: str, *, asset: str | None = None) -> int:
        """Return a balance in units of 10⁻⁶."""
        answer = self.call(asset or self.usdc, token.balance_call(address))
        return int.from_bytes(answer, "big")

    def sign_transaction(
        self,
        key: bytes,
        to: str | None,
        data: bytes = b"",
        value_wei: int = 0,
        *,
        nonce: int | None = None,
        gas: int = DEFAULT_GAS,
        max_fee_wei: int = DEFAULT_MAX_FEE_WEI,
        tip_wei: int = TIP_WEI,
    ) -> bytes:
        """Return a signed transaction; without `nonce` it gets the sender's next nonce."""
        if nonce is None:
            sender = token.address_of(key)
            nonce = int(self.rpc.result("eth_getTransactionCount", sender, "pending"), 16)
        unsigned = CancunTransactionBuilder.new_unsigned_dynamic_fee_transaction(
            chain_id=self.chain_id,
            nonce=nonce,
            max_priority_fee_per_gas=tip_wei,
            max_fee_per_gas=max_fee_wei,
            gas=gas,
            to=to_canonical_address(to) if to else CREATE_CONTRACT_ADDRESS,
            value=value_wei,
            data=data,
            access_list=(),
        )
        return unsigned.as_signed_transaction(PrivateKey(key)).encode()

    def send_transaction(
        self, key: bytes, to: str | None, data: bytes = b"", value_wei: int = 0, **fees: int
    ) -> str:
        """Sign and send a transaction and return its hash.

        `fees` are keywords of `sign_transaction`. Raises `RpcFault` if the node rejects the
        transaction. A transaction that reverts is mined nevertheless.
        """
        return self.send_raw(self.sign_transaction(key, to, data, value_wei, **fees))

    def send_raw(self, raw: bytes) -> str:
        """Send a signed transaction and return its hash."""
        answer: str = self.rpc.result("eth_sendRawTransaction", "0x" + raw.hex())
        return answer

    def deploy(self, key: bytes, contract: Contract) -> str:
        """Deploy a contract and return its address. Requires automine."""
        tx_hash = self.send_transaction(key, None, contract.creation, gas=5_000_000)
        receipt = self.receipt(tx_hash)
        if receipt is None or receipt["status"] != "0x1":
            raise RuntimeError(f"{contract.name} was not deployed.")
        address: str = receipt["contractAddress"]
        return address

    def call(self, to: str, data: bytes, block: Any = "latest") -> bytes:
        """Call a contract without a transaction."""
        answer = self.rpc.result("eth_call", {"to": to, "input": "0x" + data.hex()}, block)
        return bytes.fromhex(answer[2:])

    def receipt(self, tx_hash: str) -> dict[str, Any] | None:
        """Return a receipt as JSON-RPC; None until the transaction is mined."""
        answer: dict[str, Any] | None = self.rpc.result("eth_getTransactionReceipt", tx_hash)
        return answer

    def set_automine(self, on: bool) -> None:  # noqa: FBT001
        """Mine each transaction at once, the default, or only when `mine` is called."""
        with self.node.lock:
            self.node.set_automine(on=on)

    def set_pace(self, block_time_s: float) -> None:
        """Change the time between blocks: 0.2 s as on Base, 2 s as before Denim, or another."""
        with self.node.lock:
            self.node.set_pace(block_time_s)

    def mine(self, blocks: int = 1) -> Block:
        """Mine pending transactions and return the latest block."""
        with self.node.lock:
            for _ in range(blocks):
                self.node.mine()
            return self.node.head

    def advance(self, seconds: float) -> None:
        """Move the chain's clock forward and mine a block there, after the blocks of that time."""
        with self.node.lock:
            self.node.advance(seconds)

    def snapshot(self) -> int:
        """Return a number by which `revert` restores the current state."""
        with self.node.lock:
            return self.node.snapshot()

    def revert(self, snapshot: int) -> None:
        """Restore a snapshot: later blocks become orphans, the clock does not go back.

        Raises `KeyError` if there is no such snapshot.
        """
        with self.node.lock:
            if not self.node.revert(snapshot):
                raise KeyError(snapshot)

    def drop(self, tx_hash: str) -> bool:
        """Drop a pending transaction."""
        with self.node.lock:
            return self.node.pool.drop(bytes.fromhex(tx_hash[2:]))

    def _write_genesis(self, state: StateAPI) -> None:
        play_usdc = chain_contracts.load("PlayUSDC").runtime
        code = {
            self.usdc: play_usdc,
            OTHER_TOKEN: play_usdc,
            MULTICALL: chain_contracts.load("Multicall").runtime,
        }
        for address, runtime in code.items():
            state.set_code(to_canonical_address(address), runtime)
            # Since EIP-161 every new contract has nonce 1.
            state.set_nonce(to_canonical_address(address), 1)
        state.set_balance(to_canonical_address(token.address_of(FAUCET_KEY)), 10**6 * ONE_ETH)
