"""Converts between the API's JSON and the domain's types.

Only this package uses camelCase names and float amounts. Rules about payments belong in
`gateway.payments`.
"""

from gateway.web.wire.answers import (
    POLL_S,
    decimal,
    dumps,
    encode,
    encode_around_text,
    event,
    number,
    started,
    task,
)
from gateway.web.wire.bodies import (
    Body,
    DirectBody,
    GenerationBody,
    has_too_many_brackets,
    read,
    read_login,
    read_object,
    request_hash,
    request_of,
    request_without_file,
    with_file,
)

__all__ = [
    "POLL_S",
    "Body",
    "DirectBody",
    "GenerationBody",
    "decimal",
    "dumps",
    "encode",
    "encode_around_text",
    "event",
    "has_too_many_brackets",
    "number",
    "read",
    "read_login",
    "read_object",
    "request_hash",
    "request_of",
    "request_without_file",
    "started",
    "task",
    "with_file",
]
