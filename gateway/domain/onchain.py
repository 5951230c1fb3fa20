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
    """A mined transaction."""

    tx_hash: str
    succeeded: bool
    block_number: int
    block_hash: str
    logs: tuple[Log, ...] = ()
    fee_wei: int | None = None
    """What the sender paid for gas, the L1 part included, or None if the endpoint does not say."""
    l1_fee_wei: int | None = None
    """The part of `fee_wei` for the data on L1, or None where the chain names none."""


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

    # The transaction that it was found in, as it was mined.
    mined: "Mined | None" = attrs.field(default=None, eq=False)


@attrs.frozen(kw_only=True)
class Mined:
    """Where a transaction was mined and what it cost, for the operator's books."""

    tx_hash: str
    succeeded: bool
    block_number: int

    # Execution on L2, and data on L1; None: the endpoint does not say.
    gas_wei: int | None = None
    l1_fee_wei: int | None = None

    # The block's time in Unix seconds; None: not asked yet.
    at: float | None = None

    @classmethod
    def of(cls, receipt: Receipt, at: float | None = None) -> "Mined":
        """Return what a receipt says."""
        gas_wei = receipt.fee_wei
        if gas_wei is not None:
            gas_wei -= receipt.l1_fee_wei or 0
        return cls(
            tx_hash=receipt.tx_hash,
            succeeded=receipt.succeeded,
            block_number=receipt.block_number,
            gas_wei=gas_wei,
            l1_fee_wei=receipt.l1_fee_wei,
            at=at,
        )


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
