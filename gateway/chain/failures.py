"""What an error of JSON-RPC means: a revert, too wide a range of logs, a refusal, or no answer."""

import re
from typing import Any

from gateway.chain.retries import EndpointLags, EndpointRefused
from gateway.contracts import CallReverted
from gateway.errors import ChainUnavailable

LOGS = "eth_getLogs"
# geth's error code of JSON-RPC for "execution reverted".
_REVERTED = 3
# Other methods run no contract.
_MAY_REVERT = ("eth_call", "eth_sendRawTransaction")
# What nodes say of a call that fails without a revert: geth, reth, Nethermind.
_FAILED_CALL = re.compile(
    r"out of gas|invalid opcode|invalid jump destination|stack (under|over)flow|stack limit reached"
    r"|write protection|return data out of bounds|evm error|vm execution error",
    re.IGNORECASE,
)
# What vendors say with status 200 where a key or an address has asked too often.
_BUSY_CODES = (429, -32005, -32016, -32029)
_BUSY = re.compile(
    r"rate.?limit|too many requests|capacity exceeded|throttl|per second|quota|request count",
    re.IGNORECASE,
)
# What nodes say of a block that they do not have yet: behind one address may be several nodes.
_LAGS = re.compile(r"(header|block) not found|unknown block|could not find block", re.IGNORECASE)


class RangeRefused(ChainUnavailable):
    """An endpoint refused a query of logs; it may answer one over fewer blocks."""


def read_failure(place: int, method: str, error: Any) -> Exception:
    """Return what an error of JSON-RPC means.

    Vendors refuse a range of logs in many words and with many codes. So each error of a query of
    logs counts as one, unless it says that the endpoint is busy.
    """
    message = str(error.get("message", "")) if isinstance(error, dict) else str(error)
    code = error.get("code") if isinstance(error, dict) else None
    is_reverted = code == _REVERTED or "revert" in message.lower()
    is_failed_call = method == "eth_call" and _FAILED_CALL.search(message) is not None
    if (is_reverted and method in _MAY_REVERT) or is_failed_call:
        return CallReverted(message)
    details = message[:200]
    if _BUSY.search(message) or (code in _BUSY_CODES and method != LOGS):
        return EndpointRefused(f"RPC endpoint {place} refuses {method} for now", details=details)
    if _LAGS.search(message):
        return EndpointLags(f"RPC endpoint {place} lacks a block at {method}", details=details)
    failure = RangeRefused if method == LOGS else ChainUnavailable
    return failure(f"RPC endpoint {place}: {method} failed", details=details)
