"""What the chain promises."""

from typing import Protocol

from gateway.domain import (
    Block,
    MinedTransfer,
    Receipt,
)


class Chain(Protocol):
    """Base, as the gateway reads it. Every method raises `ChainUnavailable` without an answer."""

    async def start(self) -> None:
        """Connect and assert chain id and token domain; may be called again."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...

    async def head(self) -> Block:
        """Return the newest block."""
        ...

    async def newest_head(self) -> Block:
        """Return the newest block that any endpoint has: one that has stopped is not believed."""
        ...

    async def block_at(self, number: int) -> Block:
        """Return the block of a number."""
        ...

    async def block(self, block_hash: str) -> Block:
        """Return one block."""
        ...

    async def knows_transaction(self, tx_hash: str) -> bool:
        """Return whether any endpoint knows a transaction, mined or pending; one look at each."""
        ...

    async def receipt(self, tx_hash: str) -> Receipt | None:
        """Return a mined transaction, or None where no endpoint knows one."""
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
        """Call the token, or another contract, at the newest block, without a transaction.

        `fees` is (max fee, max priority fee) in wei per gas: with them the call sees the gas
        price that a block would show it, and `sender` must hold the ETH that it could cost.
        Raises `CallReverted` where the contract refuses, also for want of `gas`.
        """
        ...

    async def code(self, address: str) -> bytes:
        """Return an account's code at the newest block; empty for a plain key's account."""
        ...

    async def safe_head(self) -> Block:
        """Return the newest block that the network calls safe: it will not be reorganised."""
        ...

    async def transfer_logs(
        self, recipient: str, *, from_block: int, to_block: int
    ) -> list[MinedTransfer]:
        """Return the token's transfers to an address in a range of blocks, in their order."""
        ...

    async def call_uint(self, data: bytes, *, at: Block | None = None) -> int:
        """Call the token for one integer; an answer of another length is none."""
        ...

    async def authorization_logs(
        self, sender: str, nonce: str, *, from_block: int, to_block: int, known: Block
    ) -> list[tuple[str, bool]]:
        """Return (transaction hash, was it used rather than cancelled) of a nonce's logs.

        Only an endpoint that has the block `known` is believed: another may lag behind it.
        """
        ...

    async def gas_balance(self, address: str) -> int:
        """Return an account's wei."""
        ...

    async def transaction_count(self, address: str) -> int:
        """Return the nonce after an account's last mined transaction."""
        ...

    async def fees(self) -> tuple[int, int]:
        """Return (base fee of the next block, priority fee to bid), in wei per gas."""
        ...

    async def send(self, raw: bytes) -> None:
        """Broadcast; already known or already mined is fine.

        Raises `ChainUnavailable` where no endpoint took it.
        """
        ...


class CallReverted(Exception):
    """The contract refused a call; the message is its revert reason."""
