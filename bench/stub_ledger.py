"""The state of the stub chain: blocks by the clock, nonces, authorizations, receipts.

A block begins every 200 ms, as on Base, or at another pace. Direct transfers need not be sent: a
transaction whose hash begins with `DIRECT_PREFIX`, as no real one does, is a mined transfer of
0.02 USDC to the wallet.
"""

import bisect
import time
from typing import Any

import attrs
import rlp
from btclib_secp256k1 import recovery
from place import WALLET

from gateway.domain.eip3009 import AUTHORIZATION_USED_TOPIC, BASE, TRANSFER_TOPIC, keccak, topic

BLOCK_MS = 200
DIRECT_PREFIX = "0x" + "0" * 8
_BLOCK_PREFIX = "0x" + "b" * 48
_DIRECT_PAYER = "0x" + "2" * 40
_DIRECT_UNITS = 20_000


class Refused(Exception):
    """The node rejects a call; `code` is JSON-RPC's."""

    def __init__(self, message: str, code: int = -32000) -> None:
        super().__init__(message)
        self.code = code


@attrs.frozen(kw_only=True)
class Sent:
    """A signed transaction of `transferWithAuthorization`."""

    tx_hash: str
    signer: str
    nonce: int
    authorization: "SignedCall"


@attrs.frozen(kw_only=True)
class SignedCall:
    """The relevant words of the calldata."""

    sender: str
    recipient: str
    units: int
    nonce: str


@attrs.frozen
class Mined:
    """A transaction in its block; it reverted if the authorization was spent before."""

    sent: Sent
    block: int
    index: int
    is_success: bool


def read_call(data: bytes) -> SignedCall:
    """Parse a `transferWithAuthorization`; both overloads begin with the same words."""
    words = [data[start : start + 32] for start in range(4, 4 + 6 * 32, 32)]
    return SignedCall(
        sender="0x" + words[0][12:].hex(),
        recipient="0x" + words[1][12:].hex(),
        units=int.from_bytes(words[2], "big"),
        nonce="0x" + words[5].hex(),
    )


def read_transaction(raw: bytes) -> Sent:
    """Parse a signed EIP-1559 transaction, and recover its signer."""
    fields = rlp.decode(raw[1:])
    digest = keccak(b"\x02" + rlp.encode(fields[:9]))
    parity, r, s = fields[9:]
    signature, recovery_id = r.rjust(32, b"\0") + s.rjust(32, b"\0"), (parity or b"\0")[0]
    key = recovery.recover(digest, signature, recovery_id, compressed=False)
    return Sent(
        tx_hash="0x" + keccak(raw).hex(),
        signer="0x" + keccak(key[1:])[12:].hex(),
        nonce=int.from_bytes(fields[1], "big"),
        authorization=read_call(fields[7]),
    )


def block_hash(number: int) -> str:
    return f"{_BLOCK_PREFIX}{number:016x}"


def number_of(hash_: str) -> int:
    """Return the block number in a hash of `block_hash`."""
    if not hash_.startswith(_BLOCK_PREFIX):
        raise Refused("unknown block")
    return int(hash_[len(_BLOCK_PREFIX) :], 16)


class Ledger:
    """All sent and mined transactions; the state is that of the newest block."""

    def __init__(self, *, block_ms: int = BLOCK_MS) -> None:
        # A transaction gets into the next block, or with a pace of 0 at once into the newest.
        self._delay_blocks = 1 if block_ms else 0
        self._block_ms = block_ms or BLOCK_MS
        self._mined: dict[str, Mined] = {}
        self._in_order: list[Mined] = []
        self._used: dict[tuple[str, str], int] = {}  # block by (sender, nonce)
        self._blocks_of: dict[str, list[int]] = {}  # by signer: the block of each nonce
        self._waiting: dict[
            str, dict[int, Sent]
        ] = {}  # by signer and nonce: an earlier nonce is missing
        self._direct: dict[str, int] = {}  # block by hash

    def head(self, seconds_ago: float = 0.0) -> int:
        """Return the number of the newest block, now or some time ago."""
        return int((time.time() - seconds_ago) * 1000) // self._block_ms

    def block(self, number: int) -> dict[str, Any]:
        """Return a block in JSON-RPC format; Base's blocks have the milliseconds as well."""
        time_ms = number * self._block_ms
        precise = {"timestampMs": hex(time_ms)} if self._block_ms % 1000 else {}
        return precise | {
            "number": hex(number),
            "hash": block_hash(number),
            "parentHash": block_hash(number - 1),
            "timestamp": hex(time_ms // 1000),
            "baseFeePerGas": "0x5f5e100",
        }

    @property
    def settled(self) -> int:
        """How many authorizations were used."""
        return len(self._used)

    def send(self, raw: bytes) -> str:
        """Accept a transaction; it is mined once no earlier nonce is missing."""
        sent = read_transaction(raw)
        done = self._blocks_of.setdefault(sent.signer, [])
        if sent.tx_hash in self._mined:
            raise Refused("already known")
        if sent.nonce < len(done):
            raise Refused("nonce too low")
        waiting = self._waiting.setdefault(sent.signer, {})
        waiting[sent.nonce] = sent
        while (following := waiting.pop(len(done), None)) is not None:
            self._mine(following)
        return sent.tx_hash

    def _mine(self, sent: Sent) -> None:
        number = self.head() + self._delay_blocks
        key = (sent.authorization.sender, sent.authorization.nonce)
        mined = Mined(sent, number, len(self._in_order), is_success=key not in self._used)
        self._used.setdefault(key, number)
        self._blocks_of[sent.signer].append(number)
        self._mined[sent.tx_hash] = mined
        self._in_order.append(mined)

    def count(self, signer: str, which: str) -> int:
        """Return an account's next nonce, by its mined transactions or with the `pending` ones."""
        blocks = self._blocks_of.get(signer.lower(), [])
        return len(blocks) if which == "pending" else bisect.bisect_right(blocks, self.head())

    def is_used(self, sender: str, nonce: str, at: int | None = None) -> bool:
        """Return whether an authorization is spent, at a block or at the newest."""
        used_in = self._used.get((sender, nonce))
        return used_in is not None and used_in <= (self.head() if at is None else at)

    def knows(self, tx_hash: str) -> bool:
        """Return whether a transaction is mined or in the next block."""
        return tx_hash.startswith(DIRECT_PREFIX) or tx_hash in self._mined

    def receipt(self, tx_hash: str) -> dict[str, Any] | None:
        """Return the receipt of a mined transaction."""
        if tx_hash.startswith(DIRECT_PREFIX):
            number = self._direct.setdefault(tx_hash, self.head())
            transfer = _transfer_log(_DIRECT_PAYER, WALLET, _DIRECT_UNITS)
            return _receipt(tx_hash, number, _DIRECT_PAYER, [transfer])
        mined = self._mined.get(tx_hash)
        if mined is None or mined.block > self.head():
            return None
        logs = _settlement_logs(mined.sent.authorization) if mined.is_success else []
        return _receipt(tx_hash, mined.block, mined.sent.signer, logs, is_success=mined.is_success)

    def logs(self, first: int, last: int, topics: list[Any]) -> list[dict[str, Any]]:
        """Return the settlements' logs in a range of blocks that match a filter's topics."""
        start = bisect.bisect_left(self._in_order, first, key=lambda mined: mined.block)
        found = []
        for mined in self._in_order[start:]:
            if mined.block > min(last, self.head()):
                break
            receipt = self.receipt(mined.sent.tx_hash)
            logs = receipt["logs"] if receipt else []
            found += [log for log in logs if _matches(log["topics"], topics)]
        return found


def _matches(topics: list[str], wanted: list[Any]) -> bool:
    return len(wanted) <= len(topics) and all(
        want is None or topic_ in (want if isinstance(want, list) else [want])
        for topic_, want in zip(topics, wanted, strict=False)
    )


def _settlement_logs(call: SignedCall) -> list[dict[str, Any]]:
    """Return the logs of a used authorization, in the token's order."""
    used = {"topics": [AUTHORIZATION_USED_TOPIC, topic(call.sender), call.nonce], "data": "0x"}
    return [used, _transfer_log(call.sender, call.recipient, call.units)]


def _transfer_log(sender: str, recipient: str, units: int) -> dict[str, Any]:
    data = "0x" + units.to_bytes(32, "big").hex()
    return {"topics": [TRANSFER_TOPIC, topic(sender), topic(recipient)], "data": data}


def _receipt(
    tx_hash: str, number: int, sender: str, logs: list[dict[str, Any]], *, is_success: bool = True
) -> dict[str, Any]:
    """Return a receipt with all fields of a real one."""
    place = {
        "blockHash": block_hash(number),
        "blockNumber": hex(number),
        "transactionHash": tx_hash,
        "transactionIndex": "0x1",
    }
    common = place | {"address": BASE.token, "removed": False}
    return place | {
        "from": sender,
        "to": BASE.token,
        "cumulativeGasUsed": "0x1a2b3c",
        "gasUsed": "0xb1c2",
        "effectiveGasPrice": "0x5f5e100",
        "contractAddress": None,
        "logs": [
            common | log | {"logIndex": hex(index)} for index, log in enumerate(logs, start=7)
        ],
        "logsBloom": "0x" + "0" * 512,
        "status": "0x1" if is_success else "0x0",
        "type": "0x2",
    }
