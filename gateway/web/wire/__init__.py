"""Turns the specification's JSON into the domain's nouns and back.

Only here are names camelCase and amounts floats. Rules that depend on a payment belong in
`gateway.payments`.
"""

from gateway.web.wire.answers import POLL_S, dumps, number, started, task
from gateway.web.wire.bodies import (
    Body,
    DirectBody,
    GenerationBody,
    read,
    read_password,
    request_hash,
    request_of,
)

__all__ = [
    "POLL_S",
    "Body",
    "DirectBody",
    "GenerationBody",
    "dumps",
    "number",
    "read",
    "read_password",
    "request_hash",
    "request_of",
    "started",
    "task",
]
