"""Classifies JSON-RPC errors: a revert, too wide a log range, a refusal, or another failure."""

import re
from typing import Any

from gateway.chain.retries import EndpointLags, EndpointRefused
from gateway.contracts import CallReverted
from gateway.errors import ChainUnavailable

LOGS = "eth_getLogs"
# geth's error code for "execution reverted".
_REVERTED = 3
# Other methods run no contract.
_MAY_REVERT = ("eth_call", "eth_sendRawTransaction")
# Messages of geth, reth and Nethermind for calls that fail without a revert.
_FAILED_CALL = re.compile(
    r"out of gas|invalid opcode|invalid jump destination|stack (under|over)flow|stack limit reached"
    r"|write protection|return data out of bounds|evm error|vm execution error",
    re.IGNORECASE,
)
# Codes and messages of vendors' rate limits.
_BUSY_CODES = (429, -32005, -32016, -32029)
_BUSY = re.compile(
    r"rate.?(limit|exceed)|too many requests|capacity|throttl|per second|\brps\b|quota"
    r"|requests?\b.{0,20}(count|limit|exceed)",
    re.IGNORECASE,
)
# Messages of a node that lacks a block: several nodes may serve one URL.
_LAGS = re.compile(
    r"\b(header|blocks?|hash)\b.{0,90}\b(not|cannot be|could not be) (found|available)"
    r"|unknown block|could not find block|beyond (the )?(current )?head|after (the )?latest",
    re.IGNORECASE,
)
# Messages for a log query that would work over fewer blocks.
_RANGE = re.compile(
    r"\bblocks?\b|\branges?\b|\bresults?\b|response size|too (large|wide|big|broad)|query timeout",
    re.IGNORECASE,
)
# Messages for a method that is missing, or not allowed for this key.
_NEVER = re.compile(
    r"authenticat|authori[sz]|forbidden|api.?key|not supported|not found", re.IGNORECASE
)
_NO_METHOD = -32601


class RangeRefused(ChainUnavailable):
    """An endpoint refused a log query; it may accept fewer blocks."""

    def __init__(self, message: str, *, details: str | None, is_certain: bool) -> None:
        super().__init__(message, details=details)
        # Whether the message mentions blocks or a size.
        self.is_certain = is_certain


def read_failure(place: int, method: str, error: Any) -> Exception:
    """Return the exception for a JSON-RPC error.

    Vendors refuse log ranges with many messages and codes, so any unrecognised error of a log query
    counts as such a refusal.
    """
    message = str(error.get("message", "")) if isinstance(error, dict) else str(error)
    code = error.get("code") if isinstance(error, dict) else None
    is_reverted = code == _REVERTED or "revert" in message.lower()
    is_failed_call = method == "eth_call" and _FAILED_CALL.search(message) is not None
    if (is_reverted and method in _MAY_REVERT) or is_failed_call:
        return CallReverted(message)
    details = message[:200]
    if code != _NO_METHOD and _LAGS.search(message):
        return EndpointLags(f"RPC endpoint {place} lacks a block at {method}", details=details)
    failed = f"RPC endpoint {place}: {method} failed"
    is_certain = method == LOGS and _RANGE.search(message) is not None
    if is_certain:
        return RangeRefused(failed, details=details, is_certain=True)
    if code in _BUSY_CODES or _BUSY.search(message):
        return EndpointRefused(f"RPC endpoint {place} refuses {method} for now", details=details)
    if method == LOGS and code != _NO_METHOD and not _NEVER.search(message):
        return RangeRefused(failed, details=details, is_certain=False)
    return ChainUnavailable(failed, details=details)
