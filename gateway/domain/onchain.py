"""On-chain data: blocks, receipts, transfers and signed authorizations."""

import attrs


@attrs.frozen(kw_only=True)
class Block:
    """A block to which reads can be pinned."""

    number: int
    hash: str
    # Unix seconds.
    timestamp: int


@attrs.frozen(kw_only=True)
class Log:
    """One event of a transaction. Hex is in lower case."""

    address: str
    topics: tuple[str, ...]
    data: bytes
    index: int


@attrs.frozen(kw_only=True)
class Receipt:
    """The receipt of a transaction in a canonical block.

    Nodes also return receipts of transactions that are in no block yet (Flashblocks). Only
    `gateway.chain.decode.read_receipt` creates a `Receipt`, and it rejects those.
    """

    tx_hash: str
    succeeded: bool
    block: Block
    """The canonical block, as returned by the endpoint of the receipt."""
    logs: tuple[Log, ...] = ()
    gas_used: int | None = None
    """None if the endpoint does not report it."""
    fee_wei: int | None = None
    """The sender's gas cost including the L1 part, or None if the endpoint does not report it."""
    l1_fee_wei: int | None = None
    """The part of `fee_wei` for data on L1, or None if the chain reports none."""

    @property
    def block_number(self) -> int:
        """The number of the block."""
        return self.block.number

    @property
    def block_hash(self) -> str:
        """The hash of the block."""
        return self.block.hash

    @property
    def gas_wei(self) -> int | None:
        """The part of `fee_wei` for execution on L2, or None if the endpoint does not report it."""
        return None if self.fee_wei is None else self.fee_wei - (self.l1_fee_wei or 0)


@attrs.frozen(kw_only=True)
class Transfer:
    """One USDC transfer to the wallet, found in a mined transaction."""

    tx_hash: str
    log_index: int
    sender: str
    amount_units: int
    # The claim key of the authorization that this transfer used. Set if an `AuthorizationUsed` log
    # directly precedes the transfer.
    authorization_key: str | None = None
    # The receipt that contains the transfer.
    mined: Receipt | None = attrs.field(default=None, eq=False)


@attrs.frozen(kw_only=True)
class MinedTransfer:
    """One USDC transfer, from a search of the chain's logs."""

    tx_hash: str
    log_index: int
    block_number: int
    sender: str
    amount_units: int


@attrs.frozen(kw_only=True)
class Authorization:
    """A signed EIP-3009 `TransferWithAuthorization`. Hex is in lower case."""

    sender: str
    recipient: str
    value_units: int
    # Both times are Unix seconds.
    valid_after: int
    valid_before: int
    # 32 bytes in hex.
    nonce: str
    signature: bytes = attrs.field(repr=False)
