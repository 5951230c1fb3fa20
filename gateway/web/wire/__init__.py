"""The specification's JSON and the domain's nouns: camelCase and floats live only here."""

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
