# pragma version 0.4.3
# pragma evm-version cancun
# SPDX-License-Identifier: MIT
"""
@title Play money that behaves as USDC on Base does
@notice ERC-20 and EIP-3009 with the selectors, topics, revert reasons and EIP-712 domain of
    Circle's FiatTokenV2_2. Anybody may mint: never put this on a public chain.
@dev There is no constructor and there are no immutables, so the runtime code works at any address
    of a genesis state. Vyper has no overloading: `__default__` answers the overload of
    `transferWithAuthorization` that takes `bytes signature`. `from` and `value` are reserved words,
    hence `frm` and `amount`; the committed ABI carries the real names (gateway/demo/token.py).
"""

event Transfer:
    frm: indexed(address)
    to: indexed(address)
    amount: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    amount: uint256

event AuthorizationUsed:
    authorizer: indexed(address)
    nonce: indexed(bytes32)

event AuthorizationCanceled:
    authorizer: indexed(address)
    nonce: indexed(bytes32)


symbol: public(constant(String[4])) = "USDC"
version: public(constant(String[1])) = "2"
currency: public(constant(String[3])) = "USD"
decimals: public(constant(uint8)) = 6

balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
authorizationState: public(HashMap[address, HashMap[bytes32, bool]])
totalSupply: public(uint256)
paused: public(bool)
isBlacklisted: public(HashMap[address, bool])

BASE: constant(uint256) = 8453
HALF_ORDER: constant(uint256) = 57896044618658097711785492504343953926418782139537452191302581570759080747168
SIGNATURE_WORDS: constant(uint256) = 32  # the longest signature of a contract: 1,024 bytes
EIP1271_MAGIC: constant(bytes4) = 0x1626ba7e

DOMAIN_TYPEHASH: constant(bytes32) = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
TRANSFER_WITH_AUTHORIZATION_TYPEHASH: public(constant(bytes32)) = keccak256("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)")
RECEIVE_WITH_AUTHORIZATION_TYPEHASH: public(constant(bytes32)) = keccak256("ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)")
CANCEL_AUTHORIZATION_TYPEHASH: public(constant(bytes32)) = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)")
BYTES_OVERLOAD: constant(bytes4) = method_id("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)", output_type=bytes4)


@external
@view
def name() -> String[8]:
    """
    @notice "USD Coin" on Base, "USDC" on Base Sepolia, as Circle deployed them.
    """
    if chain.id == BASE:
        return "USD Coin"
    return "USDC"


@external
@view
def DOMAIN_SEPARATOR() -> bytes32:
    return self._domain_separator()


@external
def transfer(to: address, amount: uint256) -> bool:
    self._transfer(msg.sender, to, amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, amount=amount)
    return True


@external
def transferFrom(frm: address, to: address, amount: uint256) -> bool:
    assert amount <= self.allowance[frm][msg.sender], "ERC20: transfer amount exceeds allowance"
    self.allowance[frm][msg.sender] -= amount
    self._transfer(frm, to, amount)
    return True


@external
def mint(to: address, amount: uint256) -> bool:
    """
    @notice Make money out of nothing. Circle restricts this to its minters.
    """
    self.totalSupply += amount
    self.balanceOf[to] += amount
    log Transfer(frm=empty(address), to=to, amount=amount)
    return True


@external
def pause():
    """
    @notice Stop every transfer. Circle restricts this, and the three below, to its own keys.
    """
    self.paused = True


@external
def unpause():
    self.paused = False


@external
def blacklist(account: address):
    self.isBlacklisted[account] = True


@external
def unBlacklist(account: address):
    self.isBlacklisted[account] = False


@external
def transferWithAuthorization(frm: address, to: address, amount: uint256, validAfter: uint256, validBefore: uint256, nonce: bytes32, v: uint8, r: bytes32, s: bytes32):
    self._move(TRANSFER_WITH_AUTHORIZATION_TYPEHASH, frm, to, amount, validAfter, validBefore, nonce, self._packed(v, r, s))


@external
def receiveWithAuthorization(frm: address, to: address, amount: uint256, validAfter: uint256, validBefore: uint256, nonce: bytes32, v: uint8, r: bytes32, s: bytes32):
    assert to == msg.sender, "FiatTokenV2: caller must be the payee"
    self._move(RECEIVE_WITH_AUTHORIZATION_TYPEHASH, frm, to, amount, validAfter, validBefore, nonce, self._packed(v, r, s))


@external
def cancelAuthorization(authorizer: address, nonce: bytes32, v: uint8, r: bytes32, s: bytes32):
    assert not self.authorizationState[authorizer][nonce], "FiatTokenV2: authorization is used or canceled"
    self._check_signature(authorizer, keccak256(abi_encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce)), self._packed(v, r, s))
    self.authorizationState[authorizer][nonce] = True
    log AuthorizationCanceled(authorizer=authorizer, nonce=nonce)


@external
def __default__():
    """
    @notice transferWithAuthorization(from, to, value, validAfter, validBefore, nonce, bytes signature)
    @dev `slice(msg.data, ...)` needs a constant length, so the signature is read word by word.
    """
    assert len(msg.data) >= 260 and convert(slice(msg.data, 0, 4), bytes4) == BYTES_OVERLOAD
    frm: address = empty(address)
    to: address = empty(address)
    amount: uint256 = 0
    valid_after: uint256 = 0
    valid_before: uint256 = 0
    nonce: bytes32 = empty(bytes32)
    offset: uint256 = 0
    length: uint256 = 0
    frm, to, amount, valid_after, valid_before, nonce, offset, length = abi_decode(
        slice(msg.data, 4, 256), (address, address, uint256, uint256, uint256, bytes32, uint256, uint256))
    assert offset == 224 and length <= 32 * SIGNATURE_WORDS
    words: bytes32[SIGNATURE_WORDS] = empty(bytes32[SIGNATURE_WORDS])
    for i: uint256 in range(SIGNATURE_WORDS):
        if 32 * i >= length:
            break
        words[i] = convert(slice(msg.data, 260 + 32 * i, 32), bytes32)
    self._move(TRANSFER_WITH_AUTHORIZATION_TYPEHASH, frm, to, amount, valid_after, valid_before, nonce, slice(abi_encode(words), 0, length))


@internal
def _move(typehash: bytes32, frm: address, to: address, amount: uint256, valid_after: uint256, valid_before: uint256, nonce: bytes32, signature: Bytes[1024]):
    self._check_allowed(frm, to)
    assert block.timestamp > valid_after, "FiatTokenV2: authorization is not yet valid"
    assert block.timestamp < valid_before, "FiatTokenV2: authorization is expired"
    assert not self.authorizationState[frm][nonce], "FiatTokenV2: authorization is used or canceled"
    self._check_signature(frm, keccak256(abi_encode(typehash, frm, to, amount, valid_after, valid_before, nonce)), signature)
    self.authorizationState[frm][nonce] = True
    log AuthorizationUsed(authorizer=frm, nonce=nonce)
    self._transfer(frm, to, amount)


@internal
@view
def _check_allowed(frm: address, to: address):
    """
    @notice What Circle's modifiers refuse, before anything else is looked at.
    """
    assert not self.paused, "Pausable: paused"
    assert not self.isBlacklisted[frm], "Blacklistable: account is blacklisted"
    assert not self.isBlacklisted[to], "Blacklistable: account is blacklisted"


@internal
def _transfer(frm: address, to: address, amount: uint256):
    self._check_allowed(frm, to)
    assert to != empty(address), "ERC20: transfer to the zero address"
    assert amount <= self.balanceOf[frm], "ERC20: transfer amount exceeds balance"
    self.balanceOf[frm] -= amount
    self.balanceOf[to] += amount
    log Transfer(frm=frm, to=to, amount=amount)


@internal
@view
def _domain_separator() -> bytes32:
    name_hash: bytes32 = keccak256("USDC")
    if chain.id == BASE:
        name_hash = keccak256("USD Coin")
    return keccak256(abi_encode(DOMAIN_TYPEHASH, name_hash, keccak256("2"), chain.id, self))


@internal
@view
def _check_signature(signer: address, struct_hash: bytes32, signature: Bytes[1024]):
    digest: bytes32 = keccak256(concat(b"\x19\x01", self._domain_separator(), struct_hash))
    if signer.codesize > 0:
        assert self._is_approved_by_contract(signer, digest, signature), "FiatTokenV2: invalid signature"
    else:
        assert self._recovered(digest, signature) == signer, "FiatTokenV2: invalid signature"


@internal
@view
def _is_approved_by_contract(signer: address, digest: bytes32, signature: Bytes[1024]) -> bool:
    """
    @notice Ask a smart account as EIP-1271 says; one that reverts or answers too little says no.
    """
    success: bool = False
    answer: Bytes[32] = b""
    success, answer = raw_call(
        signer,
        abi_encode(digest, signature, method_id=method_id("isValidSignature(bytes32,bytes)")),
        max_outsize=32, is_static_call=True, revert_on_failure=False)
    return success and len(answer) == 32 and convert(slice(answer, 0, 4), bytes4) == EIP1271_MAGIC


@internal
@pure
def _recovered(digest: bytes32, signature: Bytes[1024]) -> address:
    """
    @notice The account that signed `digest`; stricter than ecrecover: low s, v 27 or 28.
    """
    assert len(signature) == 65, "ECRecover: invalid signature length"
    r: uint256 = convert(slice(signature, 0, 32), uint256)
    s: uint256 = convert(slice(signature, 32, 32), uint256)
    v: uint256 = convert(slice(signature, 64, 1), uint256)
    assert s <= HALF_ORDER, "ECRecover: invalid signature 's' value"
    assert v == 27 or v == 28, "ECRecover: invalid signature 'v' value"
    signer: address = ecrecover(digest, v, r, s)
    assert signer != empty(address), "ECRecover: invalid signature"
    return signer


@internal
@pure
def _packed(v: uint8, r: bytes32, s: bytes32) -> Bytes[65]:
    return concat(r, s, slice(convert(v, bytes32), 31, 1))
