"""Pending transactions, and the checks for new ones."""

from __future__ import annotations

from typing import Final

import attrs
from eth.abc import SignedTransactionAPI, StateAPI
from eth.exceptions import PyEVMError, UnrecognizedTransactionType
from eth.vm.forks.cancun.constants import BLOB_TX_TYPE
from eth.vm.forks.cancun.transactions import CancunTransactionBuilder
from eth_keys.exceptions import BadSignature
from eth_utils.exceptions import ValidationError
from rlp.exceptions import RLPException

from gateway_demo.chain.evm import GAS_LIMIT
from gateway_demo.chain.faults import RpcFault

# The least fee of a replacement, relative to both fees of the replaced one, as in geth.
PRICE_BUMP: Final = 110  # per cent


@attrs.define
class Pool:
    """Pending transactions by hash, in order of arrival."""

    chain_id: int
    waiting: dict[bytes, SignedTransactionAPI] = attrs.field(factory=dict)

    def add(self, raw: bytes, state: StateAPI) -> SignedTransactionAPI:
        """Add a signed transaction; `state` is the state after the latest block.

        Raises `RpcFault`, worded as in geth, for a transaction that is known or can never be mined.
        """
        transaction = decode(raw, self.chain_id)
        if transaction.hash in self.waiting:
            raise RpcFault("already known")
        _check(transaction)
        _check_nonce(transaction, state.get_nonce(transaction.sender))
        rival = self._find_rival(transaction)
        _check_replacement(transaction, rival)
        self._check_funds(transaction, rival, state.get_balance(transaction.sender))
        if rival is not None:
            del self.waiting[rival.hash]
        self.waiting[transaction.hash] = transaction
        return transaction

    def drop(self, transaction_hash: bytes) -> bool:
        """Drop a transaction, as a node under pressure does; False if it is not pending."""
        return self.waiting.pop(transaction_hash, None) is not None

    def forget_mined(self, state: StateAPI) -> None:
        """Drop the transactions whose nonces are used in the latest block's state."""
        self.waiting = {
            key: transaction
            for key, transaction in self.waiting.items()
            if transaction.nonce >= state.get_nonce(transaction.sender)
        }

    def in_order(self) -> list[SignedTransactionAPI]:
        """Return all by arrival, but those of one sender by nonce."""
        by_nonce = sorted(self.waiting.values(), key=lambda item: item.nonce, reverse=True)
        queues: dict[bytes, list[SignedTransactionAPI]] = {}
        for transaction in by_nonce:
            queues.setdefault(transaction.sender, []).append(transaction)
        return [queues[transaction.sender].pop() for transaction in self.waiting.values()]

    def next_nonce(self, sender: bytes, mined: int) -> int:
        """Return a sender's next nonce after `mined` and consecutive pending transactions."""
        taken = {item.nonce for item in self.waiting.values() if item.sender == sender}
        while mined in taken:
            mined += 1
        return mined

    def _find_rival(self, transaction: SignedTransactionAPI) -> SignedTransactionAPI | None:
        for other in self.waiting.values():
            if other.sender == transaction.sender and other.nonce == transaction.nonce:
                return other
        return None

    def _check_funds(
        self,
        transaction: SignedTransactionAPI,
        rival: SignedTransactionAPI | None,
        balance_wei: int,
    ) -> None:
        cost = _cost_wei(transaction)
        promised = sum(
            _cost_wei(other)
            for other in self.waiting.values()
            if other.sender == transaction.sender and other is not rival
        )
        if balance_wei < cost + promised:
            raise RpcFault(
                "insufficient funds for gas * price + value: "
                f"balance {balance_wei}, tx cost {cost}, overshot {cost + promised - balance_wei}"
            )


def decode(raw: bytes, chain_id: int) -> SignedTransactionAPI:
    """Decode a signed transaction of type 0, 1 or 2.

    Raises `RpcFault` for malformed bytes, and for a signature for another chain or for any chain.
    """
    try:
        transaction = CancunTransactionBuilder.decode(raw)
    except UnrecognizedTransactionType:
        raise RpcFault("transaction type not supported") from None
    except (RLPException, ValidationError, PyEVMError, TypeError, ValueError) as error:
        raise RpcFault(f"rlp: {error}") from None
    if transaction.type_id == BLOB_TX_TYPE:
        raise RpcFault("transaction type not supported")
    if transaction.chain_id is None:
        raise RpcFault("only replay-protected (EIP-155) transactions allowed over RPC")
    if transaction.chain_id != chain_id:
        raise RpcFault(
            "invalid sender: invalid chain id for signer: "
            f"have {transaction.chain_id} want {chain_id}"
        )
    return transaction


def _check(transaction: SignedTransactionAPI) -> None:
    try:
        transaction.check_signature_validity()
        _ = transaction.sender
    except (ValidationError, BadSignature):
        raise RpcFault("invalid sender: invalid transaction v, r, s values") from None
    if transaction.gas > GAS_LIMIT:
        raise RpcFault("exceeds block gas limit")
    if transaction.gas < transaction.intrinsic_gas:
        needed = transaction.intrinsic_gas
        raise RpcFault(f"intrinsic gas too low: gas {transaction.gas}, minimum needed {needed}")
    if transaction.max_priority_fee_per_gas > transaction.max_fee_per_gas:
        raise RpcFault("max priority fee per gas higher than max fee per gas")


def _check_nonce(transaction: SignedTransactionAPI, next_nonce: int) -> None:
    if transaction.nonce < next_nonce:
        raise RpcFault(f"nonce too low: next nonce {next_nonce}, tx nonce {transaction.nonce}")


def _check_replacement(
    transaction: SignedTransactionAPI, rival: SignedTransactionAPI | None
) -> None:
    if rival is None:
        return
    tip = rival.max_priority_fee_per_gas * PRICE_BUMP
    fee = rival.max_fee_per_gas * PRICE_BUMP
    offered = (transaction.max_priority_fee_per_gas * 100, transaction.max_fee_per_gas * 100)
    if offered[0] < tip or offered[1] < fee:
        raise RpcFault("replacement transaction underpriced")


def _cost_wei(transaction: SignedTransactionAPI) -> int:
    return transaction.gas * transaction.max_fee_per_gas + transaction.value
