"""JSON-RPC around a message: checks before the SDK reads it, and errors in JSON-RPC.

The SDK builds every value of a message as an object, so it gets small messages only. A large
message is a call with a file in Base64: the file is decoded in a thread and removed first.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

import attrs
import msgspec

from gateway.running.gateway import Gateway
from gateway.web import bodies, wire
from gateway.web.front.answers import JSON, NOT_STORED, Answer
from gateway_mcp.limits import MESSAGE_BYTES

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
# The code of MCP 2026-07-28.
UNSUPPORTED_REVISION = -32022
_MAX_REVISION_CHARS = 64
# The first code that JSON-RPC leaves to servers. Here: try again later.
NOT_NOW = -32000
_CODES = {429: NOT_NOW, 503: NOT_NOW, 500: INTERNAL_ERROR}


class Refused(Exception):
    """A message that is refused before the SDK gets it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


class _Envelope(msgspec.Struct):
    """The members of every JSON-RPC request and notification."""

    jsonrpc: Literal["2.0"]
    method: str
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Arguments(TypedDict, total=False):
    """The arguments of a call with a file. All others are short texts."""

    fileBase64: bytes
    fileName: msgspec.Raw
    fileUrl: msgspec.Raw
    prompt: msgspec.Raw
    aspect_ratio: msgspec.Raw
    output_format: msgspec.Raw
    resolution: msgspec.Raw
    # Works over HTTP only. It is listed so that it can be refused.
    callbackUrl: msgspec.Raw


class _Params(TypedDict, total=False):
    """The parameters of a call with a file."""

    name: msgspec.Raw
    arguments: _Arguments
    _meta: msgspec.Raw


class _Call(TypedDict, total=False):
    """A call with a file. Other members are skipped."""

    jsonrpc: msgspec.Raw
    id: msgspec.Raw
    method: msgspec.Raw
    params: _Params


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_CALL = msgspec.json.Decoder(_Call)


@attrs.frozen(eq=False, repr=False)
class Message:
    """A message for the SDK, and the file that was taken out of it."""

    data: bytes
    file: bytes | None = attrs.field(default=None, repr=False)


async def read_message(gateway: Gateway, data: bytes) -> Message:
    """Parse one JSON-RPC message; raises `Refused`."""
    if len(data) <= MESSAGE_BYTES:
        return _read(data)
    return await gateway.intake.bodies.run(_read, data)


def _read(data: bytes) -> Message:
    try:
        if bodies.has_too_many_brackets(data):
            raise refusal(PARSE_ERROR, "The message nests brackets too deeply, or has too many.")
        envelope = _ENVELOPE.decode(data)
        if len(data) > MESSAGE_BYTES:
            return _take_file_out(data)
    except msgspec.ValidationError:
        raise refusal(INVALID_REQUEST, "Send one JSON-RPC request or notification.") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise refusal(PARSE_ERROR, "Parse error") from None
    if envelope.params is not msgspec.UNSET and not bytes(envelope.params).startswith(b"{"):
        raise refusal(INVALID_REQUEST, "params must be an object.")
    return Message(data)


def _take_file_out(data: bytes) -> Message:
    call: Any = _CALL.decode(data)
    file = call.get("params", {}).get("arguments", {}).pop("fileBase64", None)
    rest = msgspec.json.encode(call)
    if file is None or len(rest) > MESSAGE_BYTES:
        raise refusal(INVALID_REQUEST, "The message is too large without its file.", status=413)
    return Message(rest, file)


def refusal(code: int, sentence: str, *, status: int = 400) -> Refused:
    """Return the error for a message whose id is unknown."""
    return Refused(_answer(code, sentence, status))


def to_rpc(answer: Answer) -> Answer:
    """Convert an HTTP error response to JSON-RPC."""
    body = json.loads(answer.body)
    more = {name: body[name] for name in ("code", "details") if name in body}
    code = _CODES.get(answer.status, INVALID_REQUEST)
    rpc = _answer(code, body["error"], answer.status, more)
    return attrs.evolve(rpc, headers={**answer.headers, **rpc.headers})


def unsupported_revision(data: bytes, requested: str, supported: Sequence[str]) -> Answer:
    """Return the response to a message in an unknown revision, with the supported ones."""
    asked = _ENVELOPE.decode(data).id
    about = {"supported": list(supported), "requested": requested[:_MAX_REVISION_CHARS]}
    sentence = f"Unsupported protocol version. Supported are {', '.join(supported)}."
    message_id = None if asked is msgspec.UNSET else asked
    return _answer(UNSUPPORTED_REVISION, sentence, 400, about, message_id)


def _answer(
    code: int,
    sentence: str,
    status: int,
    data: dict[str, Any] | None = None,
    message_id: Any = None,
) -> Answer:
    error: dict[str, Any] = {"code": code, "message": sentence}
    body = {"jsonrpc": "2.0", "id": message_id, "error": error | ({"data": data} if data else {})}
    return Answer(status, wire.dumps(body).encode(), JSON | NOT_STORED)
