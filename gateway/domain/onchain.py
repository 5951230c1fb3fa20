"""Facts of the chain: blocks, receipts, transfers and signed authorizations."""

import attrs


@attrs.frozen(kw_only=True)
class Block:
    """What it takes to pin reads to a block."""

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
    """A transaction that a canonical block holds.

    Nodes also return receipts of transactions that no block holds yet (Flashblocks). Only
    `gateway.chain.decode.read_receipt` makes a `Receipt`, and it leaves those out.
    """

    tx_hash: str
    succeeded: bool
    block: Block
    """The canonical block, as the endpoint of the receipt returned it."""
    logs: tuple[Log, ...] = ()
    gas_used: int | None = None
    """None if the endpoint does not say."""
    fee_wei: int | None = None
    """What the sender paid for gas, the L1 part included, or None if the endpoint does not say."""
    l1_fee_wei: int | None = None
    """The part of `fee_wei` for the data on L1, or None where the chain names none."""

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
        """The part of `fee_wei` for the execution on L2, or None if the endpoint does not say."""
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

    # The transaction that it was found in.
    mined: Receipt | None = attrs.field(default=None, eq=False)


@attrs.frozen(kw_only=True)
class MinedTransfer:
    """One USDC transfer, as a search of the chain's logs finds it."""

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
