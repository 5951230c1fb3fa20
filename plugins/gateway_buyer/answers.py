"""The JSON responses of a gateway to its buyers, parsed field by field.

The gateway is not trusted. Unknown fields are never built, so a response cannot take much more
memory than its size. Source: the interface specification §2.3, §2.5 and §2.6.
"""

import unicodedata
from typing import Annotated, TypeVar

import msgspec

# How much of a gateway's message is shown.
_MAX_SENTENCE_CHARS = 300
# A gateway keeps at most 16.
_MAX_OUTPUTS = 64
_MAX_OFFERS = 1_000
# Letters and signs without ink: fillers of Hangul, the joiner, vowels of Khmer, an empty Braille
# cell, and Mongolian and other selectors of variants. Unicode calls some of them printable.
_BLANK = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
)
_Kind = TypeVar("_Kind")


class Started(msgspec.Struct, frozen=True, rename="camel"):
    """The response that starts a generation."""

    task_id: Annotated[str, msgspec.Meta(pattern="^[0-9A-Za-z-]{1,64}$")]


class Output(msgspec.Struct, frozen=True, rename="camel"):
    """One output file of a task."""

    mime_type: str
    size_bytes: Annotated[int, msgspec.Meta(ge=0)] = msgspec.field(name="bytes")
    sha256: str
    url: str | None = None


class Result(msgspec.Struct, frozen=True, rename="camel"):
    """A task's result. A document's text is an output as well."""

    outputs: Annotated[list[Output], msgspec.Meta(max_length=_MAX_OUTPUTS)]


class TaskPayment(msgspec.Struct, frozen=True, rename="camel"):
    """The payment of a task."""

    state: str
    amount: float | None = None
    network: str | None = None
    transaction: str | None = None


class Refund(msgspec.Struct, frozen=True, rename="camel"):
    """The refund of a failed task."""

    state: str
    amount: float | None = None
    transaction: str | None = None
    # The state in words.
    message: str = ""


class Task(msgspec.Struct, frozen=True, rename="camel"):
    """A task as the gateway shows it."""

    task_id: str
    status: str
    done: bool
    slug: str = ""
    progress: float | None = None
    payment: TaskPayment | None = None
    result: Result | None = None
    error: str | None = None
    code: str | None = None
    details: str | None = None
    refund: Refund | None = None


class Choice(msgspec.Struct, frozen=True):
    """The values of an optional field."""

    values: list[str] = []
    default: str | None = None


class Offer(msgspec.Struct, frozen=True, rename="camel"):
    """One endpoint on sale."""

    slug: Annotated[str, msgspec.Meta(pattern="^[a-z0-9]+([-._][a-z0-9]+)*$", max_length=64)]
    price: float
    title: str = ""
    description: str = ""
    capability: str = ""
    required_fields: list[str] = []
    optional_fields: dict[str, Choice] = {}
    file_extensions: list[str] = []


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """The offers of a gateway."""

    available_endpoints: Annotated[list[Offer], msgspec.Meta(max_length=_MAX_OFFERS)]


class Refusal(msgspec.Struct, frozen=True, rename="camel"):
    """The body of an error."""

    error: str = ""
    code: str | None = None
    details: str | None = None


def read_json(body: bytes, kind: type[_Kind]) -> _Kind | None:
    """Parse a response's JSON as `kind`; None if it does not fit."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def read_refusal(body: bytes) -> str:
    """Return the message in an error's body; empty if there is none."""
    refusal = read_json(body, Refusal)
    if refusal is None:
        return ""
    words = [refusal.code and f"{refusal.code}:", refusal.error, refusal.details]
    return shorten(" ".join(word for word in words if word))


def shorten(sentence: str) -> str:
    """Put a gateway's message on one line, without characters that nobody sees, and cut it.

    On a line of its own it could pass for a message of this program.
    """
    sentence = " ".join("".join(map(_show, sentence)).split())
    if len(sentence) <= _MAX_SENTENCE_CHARS:
        return sentence
    return sentence[:_MAX_SENTENCE_CHARS] + "…"


def _show(char: str) -> str:
    """Return a visible character; a space for a control character, nothing for an invisible one."""
    if ord(char) in _BLANK or unicodedata.category(char) == "Cf":
        return ""
    return char if char.isprintable() else " "
