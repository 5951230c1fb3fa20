"""Multicall3: several calls in one transaction.

The sender of the inner calls is Multicall3. `transferWithAuthorization` allows any sender.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.domain.eip3009 import encoded_bytes, selector, uint, word

if TYPE_CHECKING:
    from gateway.chain.signer import Call

# The same address on every chain that has it.
MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11"
_AGGREGATE3 = selector("aggregate3((address,bool,bytes)[])")
# Bytes of a call's address, flag and calldata offset.
_HEAD = 3 * 32


def aggregate3(calls: Sequence[tuple[str, bool, bytes]]) -> bytes:
    """Encode calls, given as (contract, whether it may fail, calldata)."""
    parts = [
        word(to) + word(int(may_fail)) + word(_HEAD) + encoded_bytes(data)
        for to, may_fail, data in calls
    ]
    offsets, offset = b"", 32 * len(parts)
    for part in parts:
        offsets += word(offset)
        offset += len(part)
    return _AGGREGATE3 + word(32) + word(len(parts)) + offsets + b"".join(parts)


def read_successes(answer: bytes, count: int) -> list[bool]:
    """Return which of `count` calls succeeded, from the result of `aggregate3`.

    Raises `ValueError` for any other result: the contract is not Multicall3.
    """
    body = answer[32:]
    if uint(answer[:32]) != 32 or uint(body[:32]) != count:  # noqa: PLR2004 - one ABI word
        raise ValueError("not the answer of Multicall3 to these calls")
    results = body[32:]
    offsets = [uint(results[at : at + 32]) for at in range(0, 32 * count, 32)]
    flags = [uint(results[offset : offset + 32]) for offset in offsets]
    if not set(flags) <= {0, 1}:
        raise ValueError("not the answer of Multicall3 to these calls")
    return [flag == 1 for flag in flags]


def batch_data(calls: Sequence["Call"]) -> bytes:
    """Encode a batch of calls, each of which may fail independently."""
    return aggregate3([(call.to, True, call.data) for call in calls])
