"""USDC's money functions: transfer, transferWithAuthorization, cancelAuthorization.

The chain learns people's signatures when they are made; it verifies the gateway's own.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import attrs

from gateway import Authorization, CallReverted
from gateway.chain.shared_simulations import IS_PLAIN, SUCCEEDS
from gateway.chain.smart_wallets import recover_signer
from gateway.chain.transactions import MULTICALL3
from gateway.domain import Log
from gateway.domain.eip3009 import (
    AUTHORIZATION_CANCELED_TOPIC,
    AUTHORIZATION_STATE,
    AUTHORIZATION_USED_TOPIC,
    BALANCE_OF,
    BASE,
    TRANSFER_TOPIC,
    authorization_digest,
    selector,
    topic,
    word,
)

TOKEN = BASE.token
OTHER_TOKEN = "0x" + "fa" * 20  # somebody's coin that is no USDC
TRANSFER = selector("transfer(address,uint256)")
TRANSFER_VRS = selector(
    "transferWithAuthorization"
    "(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
)
AGGREGATE3 = selector("aggregate3((address,bool,bytes)[])")
BURN = selector("burn(uint256)")  # gives an account code that burns gas; 0 takes it away
UNDOING, PAYING = 1, 2  # all of it, so that nothing happened; or much, and the payment is made
FLIP = selector("flip(bool)")  # of a wallet with code; its mood is kept with the token's state
CANCEL_VRS = selector("cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)")


@attrs.define
class State:
    """The state after a block; unchanged parts are shared with the block before."""

    used: dict[tuple[str, str], tuple[str, bool]]  # (payer, nonce) → (transaction, paid)
    balances: dict[str, int]
    counts: dict[str, int]  # transactions of an account
    mined: dict[str, object]  # hash → Receipt
    refusing: frozenset[str] = frozenset()  # wallets with code that say no
    burning: dict[str, int] = attrs.field(factory=dict)  # accounts whose code burns gas, and how

    def copy(self) -> "State":
        return State(
            dict(self.used),
            dict(self.balances),
            dict(self.counts),
            dict(self.mined),
            self.refusing,
            dict(self.burning),
        )


@attrs.frozen
class Call:
    """One call inside a transaction."""

    caller: str
    data: bytes
    target: str = TOKEN


@attrs.frozen
class Signed:
    """The arguments of transferWithAuthorization."""

    sender: str
    recipient: str
    units: int
    valid_after: int
    valid_before: int
    nonce: str


def transfer_call(caller: str, to: str, units: int, target: str = TOKEN) -> Call:
    return Call(caller, TRANSFER + word(to) + word(units), target)


def flip_call(wallet: str, *, refuses: bool) -> Call:
    """Return a call by which the owner of a wallet with code changes its behaviour."""
    return Call(wallet, FLIP + word(int(refuses)))


def burn_call(account: str, how: int) -> Call:
    """Return a call that gives an account gas-burning code, or removes it."""
    return Call(account, BURN + word(how))


def cancel_call(signed: Authorization) -> Call:
    return Call(signed.sender, CANCEL_VRS + word(signed.sender) + word(signed.nonce) + bytes(96))


def read_signed(data: bytes) -> Signed:
    words = [data[at : at + 32] for at in range(4, 4 + 6 * 32, 32)]
    return Signed(
        "0x" + words[0][12:].hex(),
        "0x" + words[1][12:].hex(),
        *(int.from_bytes(part, "big") for part in words[2:5]),
        "0x" + words[5].hex(),
    )


def read_batch(data: bytes) -> tuple[Call, ...]:
    """Return the calls of Multicall3's `aggregate3`; the gateway allows each of them to fail."""

    def number(at: int) -> int:
        return int.from_bytes(data[at : at + 32], "big")

    base = 4 + 64
    calls = []
    for place in range(number(4 + 32)):
        at = base + number(base + 32 * place)
        assert number(at + 32) == 1
        start = at + number(at + 64)
        content = data[start + 32 : start + 32 + number(start)]
        calls.append(Call(MULTICALL3, content, "0x" + data[at + 12 : at + 32].hex()))
    return tuple(calls)


class Token:
    """The contract: runs calls on a state."""

    def __init__(self) -> None:
        self.signatures: set[bytes] = set()  # call data whose signature is its payer's
        self.wallets: set[str] = set()  # accounts whose code accepts every signature, or none
        self.suspicious: set[str] = set()  # of these, those that refuse where gas has a price
        self.delegated: set[str] = set()  # other accounts whose code does so, though the key signed

    def run(self, call: Call, state: State, timestamp: int, tx_hash: str) -> list[tuple]:
        """Change the state; return (address, topics, data) of each log. Raises `CallReverted`."""
        if call.target != TOKEN:
            return [_transfer_log(call.target, call.caller, *_to_and_units(call.data))]
        runners: dict[bytes, Callable] = {
            TRANSFER: self._transfer,
            TRANSFER_VRS: self._transfer_signed,
            CANCEL_VRS: self._cancel,
            FLIP: self._flip,
            BURN: self._burn,
        }
        return runners[call.data[:4]](call, state, timestamp, tx_hash)

    def _transfer(self, call: Call, state: State, timestamp: int, tx_hash: str) -> list[tuple]:
        to, units = _to_and_units(call.data)
        _move(state, call.caller, to, units)
        return [_transfer_log(TOKEN, call.caller, to, units)]

    def _transfer_signed(
        self, call: Call, state: State, timestamp: int, tx_hash: str
    ) -> list[tuple]:
        signed = read_signed(call.data)
        self.check(call.data, signed, state, timestamp)
        state.used[signed.sender, signed.nonce] = (tx_hash, True)
        _move(state, signed.sender, signed.recipient, signed.units)
        return [
            (TOKEN, (AUTHORIZATION_USED_TOPIC, topic(signed.sender), signed.nonce), b""),
            _transfer_log(TOKEN, signed.sender, signed.recipient, signed.units),
        ]

    def _flip(self, call: Call, state: State, timestamp: int, tx_hash: str) -> list[tuple]:
        refuses = bool(call.data[-1])
        wallet = frozenset({call.caller})
        state.refusing = state.refusing | wallet if refuses else state.refusing - wallet
        return []

    def _burn(self, call: Call, state: State, timestamp: int, tx_hash: str) -> list[tuple]:
        state.burning.pop(call.caller, None)
        if how := call.data[-1]:
            state.burning[call.caller] = how
        return []

    def burns(self, call: Call, state: State, timestamp: int) -> int:
        """Return how a call burns gas; 0: its payer's code is not called, or harmless."""
        if not state.burning or call.data[:4] != TRANSFER_VRS or call.target != TOKEN:
            return 0
        signed = read_signed(call.data)
        is_asked = signed.valid_after < timestamp < signed.valid_before
        is_asked = is_asked and (signed.sender, signed.nonce) not in state.used
        return state.burning.get(signed.sender, 0) if is_asked else 0

    def _cancel(self, call: Call, state: State, timestamp: int, tx_hash: str) -> list[tuple]:
        nonce = "0x" + call.data[36:68].hex()
        if (call.caller, nonce) in state.used:
            raise CallReverted("authorization is used or canceled")
        state.used[call.caller, nonce] = (tx_hash, False)
        return [(TOKEN, (AUTHORIZATION_CANCELED_TOPIC, topic(call.caller), nonce), b"")]

    def check(
        self, data: bytes, signed: Signed, state: State, timestamp: int, *, priced: bool = True
    ) -> None:
        """Raise `CallReverted` as the contract would; `priced`: gas has a price."""
        if timestamp <= signed.valid_after:
            raise CallReverted("FiatTokenV2: authorization is not yet valid")
        if timestamp >= signed.valid_before:
            raise CallReverted("FiatTokenV2: authorization is expired")
        if (signed.sender, signed.nonce) in state.used:
            raise CallReverted("authorization is used or canceled")
        if state.burning.get(signed.sender) == UNDOING:
            raise CallReverted("out of gas")
        if priced and signed.sender in self.delegated:
            raise CallReverted("invalid signature")
        if signed.sender in self.wallets:
            is_wary = priced and signed.sender in self.suspicious
            if is_wary or signed.sender in state.refusing:
                raise CallReverted("invalid signature")
        elif data not in self.signatures and not self._is_signed(data, signed):
            raise CallReverted("invalid signature")
        if state.balances.get(signed.sender, 0) < signed.units:
            raise CallReverted("ERC20: transfer amount exceeds balance")

    def _is_signed(self, data: bytes, signed: Signed) -> bool:
        """Recover the signer of an unknown signature; a valid one is remembered."""
        v, r, s = (data[at : at + 32] for at in range(4 + 6 * 32, 4 + 9 * 32, 32))
        authorization = Authorization(
            sender=signed.sender,
            recipient=signed.recipient,
            value_units=signed.units,
            valid_after=signed.valid_after,
            valid_before=signed.valid_before,
            nonce=signed.nonce,
            signature=r + s + v[31:],
        )
        digest = authorization_digest(authorization, BASE)
        if recover_signer(digest, authorization.signature) != signed.sender:
            return False
        self.signatures.add(data)
        return True

    def _view_batch(self, data: bytes, state: State, timestamp: int) -> bytes:
        """Handle a call of Multicall3: return which calls succeed, without their results."""
        flags = []
        for call in read_batch(data):
            try:
                self.run(call, state, timestamp, "simulated")
            except CallReverted:
                flags.append(0)
            else:
                flags.append(1)
        count = len(flags)
        offsets = [32 * count + 96 * place for place in range(count)]
        results = [word(flag) + word(64) + word(0) for flag in flags]
        return word(32) + word(count) + b"".join([*map(word, offsets), *results])

    def has_code(self, address: str, state: State) -> bool:
        """Whether a payer's account has code."""
        return address in self.wallets | self.delegated or address in state.burning

    def view_shared(self, calls: list[bytes], tip: Any) -> bytes:
        """Run transfers one after another after a block, at no gas price; return their flags."""
        state, flags = tip.state.copy(), []
        for data in calls:
            signed = read_signed(data)
            flag = 0 if self.has_code(signed.sender, state) else IS_PLAIN
            with contextlib.suppress(CallReverted):
                self.check(data, signed, state, tip.timestamp, priced=False)
                state.used[signed.sender, signed.nonce] = ("simulated", True)
                _move(state, signed.sender, signed.recipient, signed.units)
                flag |= SUCCEEDS
            flags.append(flag)
        return bytes(flags)

    def view(self, data: bytes, state: State, timestamp: int, *, priced: bool = False) -> bytes:
        """Handle an `eth_call`."""
        head = data[:4]
        account = "0x" + data[16:36].hex()
        if head == AUTHORIZATION_STATE:
            return word(int((account, "0x" + data[36:68].hex()) in state.used))
        if head == BALANCE_OF:
            return word(state.balances.get(account, 0))
        if head == TRANSFER_VRS:
            self.check(data, read_signed(data), state, timestamp, priced=priced)
            return b""
        if head == AGGREGATE3:
            return self._view_batch(data, state.copy(), timestamp)
        raise CallReverted("unknown function")


def receipt_logs(raw: list[tuple], first_index: int) -> tuple[Log, ...]:
    return tuple(
        Log(address=address, topics=topics, data=data, index=first_index + place)
        for place, (address, topics, data) in enumerate(raw)
    )


def _to_and_units(data: bytes) -> tuple[str, int]:
    return "0x" + data[16:36].hex(), int.from_bytes(data[36:68], "big")


def _transfer_log(address: str, sender: str, to: str, units: int) -> tuple:
    return (address, (TRANSFER_TOPIC, topic(sender), topic(to)), word(units))


def _move(state: State, sender: str, to: str, units: int) -> None:
    if state.balances.get(sender, 0) < units:
        raise CallReverted("ERC20: transfer amount exceeds balance")
    state.balances[sender] = state.balances.get(sender, 0) - units
    state.balances[to] = state.balances.get(to, 0) + units
