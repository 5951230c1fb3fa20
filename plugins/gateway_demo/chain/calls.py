"""`eth_call` and `eth_estimateGas` on any block: messages whose effects are discarded."""

from __future__ import annotations

from typing import Final, cast

import attrs
from eth.abc import ComputationAPI, SignedTransactionAPI, StateAPI
from eth.constants import CREATE_CONTRACT_ADDRESS, ZERO_ADDRESS
from eth.exceptions import InvalidInstruction, OutOfGas, Revert, VMError
from eth.vm.forks.cancun.transactions import CancunTransactionBuilder
from eth.vm.spoof import SpoofTransaction
from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_typing import Address

from gateway_demo.chain.evm import BASE_FEE_WEI, GAS_LIMIT, Block, Evm
from gateway_demo.chain.faults import EXECUTION_REVERTED, RpcFault

PLAIN_TRANSFER_GAS: Final = 21_000
CALL_STIPEND: Final = 2_300
# The selector of `Error(string)`, by which Solidity and Vyper encode a revert reason.
_ERROR_SELECTOR: Final = bytes.fromhex("08c379a0")


@attrs.frozen(kw_only=True)
class Call:
    """A message to run.

    Without fees the sender pays no gas. With fees, as in geth, the message runs at a block's gas
    price, and the sender needs enough ETH for the gas.
    """

    sender: Address = ZERO_ADDRESS
    to: Address = CREATE_CONTRACT_ADDRESS
    data: bytes = b""
    value_wei: int = 0
    gas: int = GAS_LIMIT
    max_fee_wei: int = 0
    max_priority_wei: int = 0


def call(evm: Evm, block: Block, message: Call) -> bytes:
    """Run a message on the state after `block` and return its output.

    Raises `RpcFault` with the reason if it reverts or fails.
    """
    computation = _run(evm, block, message)
    if computation.is_error:
        raise _make_fault(computation.error)
    return computation.output


def estimate_gas(evm: Evm, block: Block, message: Call) -> int:
    """Return enough gas: the gas used, plus the 1/64 that EIP-150 withholds from calls.

    Raises `RpcFault` if the message reverts or fails.
    """
    computation = _run(evm, block, message)
    if computation.is_error:
        raise _make_fault(computation.error)
    used = message.gas - computation.get_gas_remaining()
    if used == PLAIN_TRANSFER_GAS:
        return used
    likely = (used + CALL_STIPEND) * 64 // 63
    if likely >= message.gas or _run(evm, block, attrs.evolve(message, gas=likely)).is_error:
        return message.gas
    return likely


def _run(evm: Evm, block: Block, message: Call) -> ComputationAPI:
    base_fee_wei = BASE_FEE_WEI if message.max_fee_wei else 0
    if message.max_fee_wei < base_fee_wei:
        raise RpcFault("max fee per gas less than block base fee")
    state = evm.state(block, base_fee_wei=base_fee_wei)
    _check_balance(state, message)
    unsigned = CancunTransactionBuilder.new_unsigned_dynamic_fee_transaction(
        chain_id=evm.chain_id,
        nonce=state.get_nonce(message.sender),
        max_priority_fee_per_gas=message.max_priority_wei,
        max_fee_per_gas=message.max_fee_wei,
        gas=message.gas,
        to=message.to,
        value=message.value_wei,
        data=message.data,
        access_list=(),
    )
    if message.gas < unsigned.intrinsic_gas:
        needed = unsigned.intrinsic_gas
        raise RpcFault(f"intrinsic gas too low: have {message.gas}, want {needed}")
    spoofed = SpoofTransaction(unsigned, from_=message.sender)
    return state.apply_transaction(cast("SignedTransactionAPI", spoofed))


def _check_balance(state: StateAPI, message: Call) -> None:
    have = state.get_balance(message.sender)
    want = message.value_wei + message.gas * message.max_fee_wei
    if have < want:
        raise RpcFault(
            "insufficient funds for gas * price + value: "
            f"address 0x{message.sender.hex()} have {have} want {want}"
        )


def _make_fault(error: VMError) -> RpcFault:
    if isinstance(error, Revert):
        data = error.args[0] if error.args and isinstance(error.args[0], bytes) else b""
        return RpcFault(_read_revert_message(data), code=EXECUTION_REVERTED, data="0x" + data.hex())
    if isinstance(error, OutOfGas):
        return RpcFault("out of gas")
    if isinstance(error, InvalidInstruction):
        return RpcFault("invalid opcode")
    return RpcFault(str(error) or type(error).__name__)


def _read_revert_message(data: bytes) -> str:
    if data[:4] != _ERROR_SELECTOR:
        return "execution reverted"
    try:
        (reason,) = decode(["string"], data[4:])
    except DecodingError:
        return "execution reverted"
    return f"execution reverted: {reason}"
