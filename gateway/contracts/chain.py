"""The gateway's access to the chain."""

from typing import Protocol

from gateway.domain import (
    Block,
    MinedTransfer,
    Receipt,
)


class Chain(Protocol):
    """Base, as the gateway reads it.

    Every method raises `ChainUnavailable` if no endpoint answers, or if the answers are invalid.
    """

    async def start(self) -> None:
        """Connect, and assert the chain id and the token's domain. May be called again."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...

    async def head(self) -> Block:
        """Return the newest block."""
        ...

    async def newest_head(self) -> Block:
        """Return the newest block of any endpoint, so that a stopped endpoint does no harm."""
        ...

    async def block_at(self, number: int) -> Block:
        """Return the block with this number."""
        ...

    async def block(self, block_hash: str) -> Block:
        """Return the block with this hash."""
        ...

    async def knows_transaction(self, tx_hash: str) -> bool:
        """Return whether any endpoint knows a transaction, mined or pending. Asks each once."""
        ...

    async def receipt(self, tx_hash: str) -> Receipt | None:
        """Return the receipt of a mined transaction, or None if no canonical block holds it."""
        ...

    async def call(
        self,
        data: bytes,
        *,
        sender: str | None = None,
        to: str | None = None,
        gas: int | None = None,
        fees: tuple[int, int] | None = None,
    ) -> bytes:
        """Call the token, or the contract `to`, at the newest block, without a transaction.

        `fees` is (max fee, max priority fee) in wei per gas. With `fees` the call sees the gas
        price that a block would show it, and `sender` must hold the ETH that it could cost.
        Raises `CallReverted` if the contract refuses, or if `gas` does not suffice.
        """
        ...

    async def code(self, address: str, *, at: Block | None = None) -> bytes:
        """Return an account's code, at the newest block or at the block `at`.

        A plain key's account has none.
        """
        ...

    async def safe_head(self) -> Block:
        """Return the newest block that the network calls safe, so it will not be reorganised."""
        ...

    async def transfer_logs(
        self, recipient: str | None, *, sender: str | None = None, from_block: int, to_block: int
    ) -> list[MinedTransfer]:
        """Return the token's transfers to or from an address in a range of blocks, oldest first.

        None is any address.
        """
        ...

    async def call_uint(self, data: bytes, *, at: Block | None = None) -> int:
        """Call the token and return one uint256, at the newest block or at the block `at`.

        An answer that is not 32 bytes counts as no answer.
        """
        ...

    async def authorization_logs(
        self, sender: str, nonce: str, *, from_block: int, to_block: int, known: Block
    ) -> list[tuple[str, bool]]:
        """Return (transaction hash, whether it was used rather than cancelled) of a nonce's logs.

        Only an endpoint that has the block `known` counts: any other may lag behind.
        """
        ...

    async def gas_balance(self, address: str) -> int:
        """Return an account's balance in wei."""
        ...

    async def transaction_count(self, address: str, *, at: Block | None = None) -> int:
        """Return the nonce after an account's last mined transaction, or after the block `at`."""
        ...

    async def fees(self) -> tuple[int, int]:
        """Return (base fee of the next block, priority fee to bid), in wei per gas."""
        ...

    async def send(self, raw: bytes) -> None:
        """Broadcast a signed transaction. An endpoint that knows it already counts as success.

        Raises `ChainUnavailable` if no endpoint took it.
        """
        ...


class CallReverted(Exception):
    """The contract refused a call; the message is its revert reason."""
