"""JSON-RPC errors of the embedded chain, worded as in geth."""

from __future__ import annotations

from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
# geth's code for most errors.
SERVER_ERROR: Final = -32000
# geth's code for a revert, sent with the contract's revert data.
EXECUTION_REVERTED: Final = 3


class RpcFault(Exception):
    """A request that the chain rejects."""

    def __init__(self, message: str, *, code: int = SERVER_ERROR, data: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data

    def to_json(self) -> dict[str, object]:
        """Return the `error` member of a response."""
        fields: dict[str, object] = {"code": self.code, "message": self.message}
        return fields if self.data is None else {**fields, "data": self.data}


def invalid_argument(position: int, why: str) -> RpcFault:
    """Return the fault for a parameter at a position, counted from 0."""
    return RpcFault(f"invalid argument {position}: {why}", code=INVALID_PARAMS)
