"""Facts of the chain: blocks, receipts, transfers, signed authorizations."""

import attrs


@attrs.frozen(kw_only=True)
class Block:
    """The head of a block: enough to pin reads to it."""

    number: int
    hash: str
    timestamp: int  # Unix seconds


@attrs.frozen(kw_only=True)
class Log:
    """One event of a transaction; hex in lower case."""

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
    """What its sender paid for gas, the L1 part included; None where the endpoint does not say."""


@attrs.frozen(kw_only=True)
class Transfer:
    """One USDC transfer to the wallet, found in a mined transaction."""

    tx_hash: str
    log_index: int
    sender: str
    amount_units: int
    authorization_key: str | None = None  # set where an AuthorizationUsed log directly precedes it


@attrs.frozen(kw_only=True)
class MinedTransfer:
    """One USDC transfer as a search of the chain's logs finds it."""

    tx_hash: str
    log_index: int
    block_number: int
    sender: str
    amount_units: int


@attrs.frozen(kw_only=True)
class Authorization:
    """An EIP-3009 `TransferWithAuthorization` somebody signed; hex in lower case."""

    sender: str
    recipient: str
    value_units: int
    valid_after: int  # Unix seconds
    valid_before: int
    nonce: str  # 32 bytes
    signature: bytes = attrs.field(repr=False)
