"""The gateway's access to the chain."""

from collections.abc import Collection
from typing import Protocol

from gateway.domain import (
    Authorization,
    Block,
    MinedTransfer,
    Receipt,
)

# One address or several; None: any.
Addresses = str | Collection[str] | None


class Chain(Protocol):
    """Access to Base.

    Every method raises `ChainUnavailable` if no endpoint gives a valid answer.
    """

    async def start(self) -> None:
        """Connect, and check the chain id and the token's domain. Idempotent."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...

    async def renew(self) -> None:
        """Open new connections for later calls: the present ones may be dead without a sign."""
        ...

    async def head(self) -> Block:
        """Return the newest block."""
        ...

    async def newest_head(self) -> Block:
        """Return the newest block of any endpoint, in case the first one is stuck."""
        ...

    def server_time(self) -> float | None:
        """Return the time by the endpoints' own clocks, in Unix seconds; None if unknown.

        It shows whether this machine's clock is wrong, or the chain's blocks are old.
        """
        ...

    async def block_at(self, number: int) -> Block:
        """Return the block with this number."""
        ...

    async def block(self, block_hash: str) -> Block:
        """Return the block with this hash."""
        ...

    async def knows_transaction(self, tx_hash: str) -> bool:
        """Return whether any endpoint knows a transaction, mined or pending."""
        ...

    async def receipt(self, tx_hash: str) -> Receipt | None:
        """Return the receipt of a mined transaction, or None if no canonical block has it."""
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
        """Simulate a call of the token, or of the contract `to`, at the newest block.

        `fees` is (max fee, max priority fee) in wei per gas. With `fees` the call sees the same gas
        price as in a block, and `sender` must have the ETH that it could cost.
        Raises `CallReverted` if the contract reverts, or if `gas` does not suffice.
        """
        ...

    async def simulate_plain(self, authorization: Authorization) -> bool:
        """Return whether a plain account's transfer succeeds, and the account has no code.

        Both are read in one state, which is not older than this call. False: simulate it alone, for
        one of both does not hold, or is unknown. Sales of one moment share an `eth_call`.
        """
        ...

    async def code(self, address: str, *, at: Block | None = None) -> bytes:
        """Return an account's code, at the newest block or at the block `at`.

        A plain key's account has none.
        """
        ...

    async def safe_head(self) -> Block:
        """Return the newest safe block, which will not be reorganised."""
        ...

    async def transfer_logs(
        self,
        recipient: Addresses,
        *,
        sender: Addresses = None,
        from_block: int,
        to_block: int,
    ) -> list[MinedTransfer]:
        """Return the token's transfers to or from addresses in a range of blocks, oldest first."""
        ...

    async def call_uint(self, data: bytes, *, at: Block | int | None = None) -> int:
        """Call the token and return one uint256, at the newest block or at the block `at`.

        A block number is not pinned: a reorganisation may replace its block, so such an answer is
        only a hint. Many endpoints keep no old state. Any result but 32 bytes counts as no answer.
        """
        ...

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
        """Return (transaction hash, whether it was used rather than cancelled) of a nonce's logs.

        The newest blocks are searched first. An empty list means that every endpoint has the block
        `known` and shows no log. A search that is not patient takes few queries.
        """
        ...

    async def authorization_receipts(
        self, sender: str, nonce: str, *, number: int
    ) -> list[tuple[str, bool]]:
        """Return the same from the receipts of one block; not all endpoints offer them."""
        ...

    async def gas_balance(self, address: str) -> int:
        """Return an account's balance in wei."""
        ...

    async def transaction_count(self, address: str, *, at: Block | None = None) -> int:
        """Return an account's next nonce by mined transactions, now or after the block `at`."""
        ...

    async def fees(self) -> tuple[int, int]:
        """Return (base fee of the next block, priority fee to bid), in wei per gas."""
        ...

    async def send(self, raw: bytes) -> None:
        """Broadcast a signed transaction; one that is known already counts as sent.

        Raises `ChainUnavailable` if no endpoint accepts it.
        """
        ...


class CallReverted(Exception):
    """The contract reverted; the message is its reason."""
