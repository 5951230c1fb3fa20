"""The JSON that a gateway answers a buyer with, read field by field.

The gateway is a stranger. A field that is not named here is never built, so an answer cannot cost
much more memory than its size. Source: the interface specification §2.3, §2.5 and §2.6.
"""

from typing import Annotated, TypeVar

import msgspec

# So much of a stranger's sentence is shown.
_MAX_SENTENCE_CHARS = 300
# A gateway keeps 16 at most.
_MAX_OUTPUTS = 64
_Kind = TypeVar("_Kind")


class Started(msgspec.Struct, frozen=True, rename="camel"):
    """The answer that a generation has started."""

    task_id: Annotated[str, msgspec.Meta(pattern="^[0-9A-Za-z-]{1,64}$")]


class Output(msgspec.Struct, frozen=True, rename="camel"):
    """One file that a task made."""

    mime_type: str
    size_bytes: Annotated[int, msgspec.Meta(ge=0)] = msgspec.field(name="bytes")
    sha256: str
    url: str | None = None


class Result(msgspec.Struct, frozen=True, rename="camel"):
    """What a task made. A document's text is an output as well."""

    outputs: Annotated[list[Output], msgspec.Meta(max_length=_MAX_OUTPUTS)]


class TaskPayment(msgspec.Struct, frozen=True, rename="camel"):
    """What the task was paid with."""

    state: str
    amount: float | None = None
    network: str | None = None
    transaction: str | None = None


class Refund(msgspec.Struct, frozen=True, rename="camel"):
    """Money that goes back for a failed task."""

    state: str
    amount: float | None = None
    transaction: str | None = None


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


class Refusal(msgspec.Struct, frozen=True, rename="camel"):
    """An error's body."""

    error: str = ""
    code: str | None = None
    details: str | None = None


def read_json(body: bytes, kind: type[_Kind]) -> _Kind | None:
    """Return an answer's JSON as this kind; None for anything else."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def read_refusal(body: bytes) -> str:
    """Return the words of an error's body; an empty text where there are none."""
    refusal = read_json(body, Refusal)
    if refusal is None:
        return ""
    words = [refusal.code and f"{refusal.code}:", refusal.error, refusal.details]
    return shorten(" ".join(word for word in words if word))


def shorten(sentence: str) -> str:
    """Return a stranger's sentence on one line, cut to a length that can be shown.

    A line of its own could pass for one of this program's.
    """
    sentence = " ".join(sentence.split())
    if len(sentence) <= _MAX_SENTENCE_CHARS:
        return sentence
    return sentence[:_MAX_SENTENCE_CHARS] + "…"
