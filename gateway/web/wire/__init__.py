"""Converts between the API's JSON and the domain's types.

Only this package uses camelCase names and float amounts. Rules about payments belong in
`gateway.payments`.
"""

from gateway.web.wire.answers import (
    POLL_S,
    challenge_schema,
    decimal,
    dumps,
    encode,
    encode_around_text,
    error_schema,
    event,
    number,
    started,
    started_schema,
    task,
    task_schema,
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
    "challenge_schema",
    "decimal",
    "dumps",
    "encode",
    "encode_around_text",
    "error_schema",
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
    "started_schema",
    "task",
    "task_schema",
    "with_file",
]
