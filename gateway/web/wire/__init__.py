"""Turns the JSON of requests and tasks into the domain's nouns and back.

Names in camelCase and amounts as floats belong here. Rules about a payment do not: they are in
`gateway.payments`.
"""

from gateway.web.wire.answers import POLL_S, dumps, number, started, task
from gateway.web.wire.bodies import (
    Body,
    DirectBody,
    GenerationBody,
    has_too_many_brackets,
    read,
    read_password,
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
    "dumps",
    "has_too_many_brackets",
    "number",
    "read",
    "read_password",
    "request_hash",
    "request_of",
    "request_without_file",
    "started",
    "task",
    "with_file",
]
