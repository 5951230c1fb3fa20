# pragma version 0.4.3
# pragma evm-version cancun
# SPDX-License-Identifier: MIT
"""
@title A smart account with the interface of Coinbase's (Base Account)
@notice Its owners sign a hash that names the account and the chain, so one owner's signature is no use
    at another account. Owners are plain accounts here; the real one also has passkeys.
"""

struct SignatureWrapper:
    ownerIndex: uint256
    signatureData: Bytes[1024]

MOST_OWNERS: constant(uint256) = 4
EIP1271_MAGIC: constant(bytes4) = 0x1626ba7e
DOMAIN: constant(bytes32) = keccak256(
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
MESSAGE: constant(bytes32) = keccak256("CoinbaseSmartWalletMessage(bytes32 hash)")

owners: DynArray[Bytes[64], MOST_OWNERS]


@external
def initialize(owners: DynArray[Bytes[64], MOST_OWNERS]):
    assert len(self.owners) == 0, "BaseAccount: initialized"
    assert len(owners) > 0, "BaseAccount: no owner"
    self.owners = owners


@external
@view
def replaySafeHash(digest: bytes32) -> bytes32:
    return self._replay_safe_hash(digest)


@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[2048]) -> bytes4:
    wrapper: SignatureWrapper = abi_decode(signature, SignatureWrapper)
    owner: Bytes[64] = self.owners[wrapper.ownerIndex]
    if len(owner) != 32 or len(wrapper.signatureData) != 65:
        return empty(bytes4)
    r: uint256 = convert(slice(wrapper.signatureData, 0, 32), uint256)
    s: uint256 = convert(slice(wrapper.signatureData, 32, 32), uint256)
    v: uint256 = convert(slice(wrapper.signatureData, 64, 1), uint256)
    signer: address = ecrecover(self._replay_safe_hash(digest), v, r, s)
    if signer == empty(address) or convert(slice(owner, 0, 32), uint256) != convert(signer, uint256):
        return empty(bytes4)
    return EIP1271_MAGIC


@internal
@view
def _replay_safe_hash(digest: bytes32) -> bytes32:
    domain: bytes32 = keccak256(
        abi_encode(DOMAIN, keccak256("Coinbase Smart Wallet"), keccak256("1"), chain.id, self)
    )
    return keccak256(concat(b"\x19\x01", domain, keccak256(abi_encode(MESSAGE, digest))))


@external
@payable
def __default__():
    pass
