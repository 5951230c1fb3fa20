# pragma version 0.4.3
# pragma evm-version cancun
# SPDX-License-Identifier: MIT
"""
@title The smallest smart account: it has an owner, and accepts the owner's signatures (EIP-1271)
@dev The owner is set by the first call of `initialize`: without a constructor, runtime code suffices.
"""

owner: public(address)

EIP1271_MAGIC: constant(bytes4) = 0x1626ba7e


@external
def initialize(owner: address):
    assert self.owner == empty(address), "SmartAccount: initialized"
    self.owner = owner


@external
@payable
def execute(target: address, amount: uint256, data: Bytes[1024]):
    assert msg.sender == self.owner, "SmartAccount: not the owner"
    raw_call(target, data, value=amount)


@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[1024]) -> bytes4:
    if len(signature) != 65:
        return empty(bytes4)
    r: uint256 = convert(slice(signature, 0, 32), uint256)
    s: uint256 = convert(slice(signature, 32, 32), uint256)
    v: uint256 = convert(slice(signature, 64, 1), uint256)
    if ecrecover(digest, v, r, s) != self.owner:
        return empty(bytes4)
    return EIP1271_MAGIC


@external
@payable
def __default__():
    pass
