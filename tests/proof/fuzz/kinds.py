"""The kinds of fuzzed input, each with its strategy and the code under test."""

import contextlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import attrs
from hypothesis import strategies as st

from tests.proof.fuzz import asks, fuzzed_gateway, measures, parsers, rpc_answers

_RECURSION = 1_000  # Python's own; libraries that only tests import raise it


@attrs.frozen(kw_only=True)
class Kind:
    """One kind of input; `run` returns the outcome as a word, or raises."""

    name: str
    inputs: st.SearchStrategy
    run: Callable[[Any], str]
    share: int  # of a hundred inputs


@contextlib.contextmanager
def opened() -> Iterator[list[Kind]]:
    """Yield every kind, over one gateway and one reader of the chain."""
    limit = sys.getrecursionlimit()
    reader = parsers.ChainReader()
    sys.setrecursionlimit(_RECURSION)
    try:
        with fuzzed_gateway.opened() as place, fuzzed_gateway.opened() as lied_to:
            yield [*_parsers(reader), *_routes(place), _lies(lied_to)]
    finally:
        sys.setrecursionlimit(limit)
        reader.close()


def _parsers(reader: parsers.ChainReader) -> list[Kind]:
    return [
        Kind(name="body, parsed", inputs=asks.bodies, run=parsers.read_body, share=10),
        Kind(name="measures, priced", inputs=measures.reports, run=measures.read_report, share=5),
        Kind(name="header, parsed", inputs=asks.headers(), run=parsers.read_header, share=10),
        Kind(
            name="MPP credential, parsed",
            inputs=asks.headers([parsers.credential()]),
            run=parsers.read_credential,
            share=5,
        ),
        Kind(name="RPC answer, parsed", inputs=rpc_answers.answers(), run=reader.read, share=15),
    ]


def _routes(place: fuzzed_gateway.Site) -> list[Kind]:
    nothing = place.charged()

    def sells_nothing(ask: asks.Ask) -> str:
        status = place.ask(ask)
        assert place.charged() == nothing
        return status

    return [
        Kind(name="x402 body", inputs=asks.x402_asks(), run=sells_nothing, share=15),
        Kind(name="x402 header", inputs=asks.payment_asks(), run=sells_nothing, share=12),
        Kind(name="direct body", inputs=asks.direct_asks(), run=sells_nothing, share=13),
        Kind(name="path and query", inputs=asks.path_asks(), run=sells_nothing, share=5),
    ]


def _lies(place: fuzzed_gateway.Site) -> Kind:
    """The direct flow over an endpoint that returns anything; a receipt may be believed."""

    numbers = itertools.count(1)

    def believe(answer: bytes) -> str:
        tx_hash = f"0x{next(numbers):064x}"  # a new one each time, as nonce too: none is used up
        for known in (rpc_answers.HASH, rpc_answers.NONCE):
            answer = answer.replace(known.encode(), tx_hash.encode())
        place.liar.receipt = answer
        return place.ask(asks.direct_ask(tx_hash))

    lies = rpc_answers.answers(rpc_answers.receipts)
    return Kind(name="receipt, direct flow", inputs=lies, run=believe, share=10)


def to_json(value: Any) -> Any:
    """Convert an input for the corpus, preserving bytes and lone surrogates."""
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, asks.Ask):
        return attrs.asdict(value) | {"body": value.body.decode("latin-1")}
    return value


def from_json(value: Any) -> Any:
    """Convert an input of the corpus back."""
    if isinstance(value, dict) and "bytes" in value:
        data = value.get("before", "") + value["bytes"] * value.get("times", 1)
        return (data + value.get("after", "")).encode("latin-1")
    if isinstance(value, dict):
        headers = tuple((name, text) for name, text in value.get("headers", []))
        return asks.Ask(
            method=value["method"],
            path=value["path"],
            headers=headers,
            body=value.get("body", "").encode("latin-1"),
        )
    return value


def load(text: str) -> list[tuple[str, Any]]:
    """Return a corpus file's (reason, input)."""
    return [(entry["why"], from_json(entry["input"])) for entry in json.loads(text)]
