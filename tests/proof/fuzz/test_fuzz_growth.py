"""No parser of untrusted bytes is worse than linear; `make fuzz` grows larger inputs."""

import re

import attrs
import pytest

from tests.proof.fuzz import fuzzed_gateway, growth

_PARSERS = growth.parsers(body_bytes=64_000, header_bytes=16_000)


@pytest.mark.parametrize("grown", _PARSERS, ids=lambda grown: grown.name)
def test_no_parser_is_worse_than_linear(grown):
    found = [
        str(bad) for shape in growth.shapes(grown) if (bad := growth.super_linear(grown, shape))
    ]
    assert found == []


@pytest.mark.full
def test_no_header_or_path_costs_a_route_more_than_linear_time():
    with fuzzed_gateway.opened() as site:
        found = [
            str(bad)
            for grown in growth.routes(site)
            for shape in growth.shapes(grown)
            if (bad := growth.super_linear(grown, shape))
        ]
    assert found == []


@pytest.mark.full
def test_the_pattern_that_once_froze_the_gateway_is_found():
    """An unterminated string with escapes was tried again from each quote in it."""
    string = re.compile(rb'"(?:[^"\\]|\\.)*"')
    (body,) = [grown for grown in _PARSERS if grown.name == "body of x402"]
    old = attrs.evolve(body, run=lambda data: string.sub(b"", data))
    assert growth.super_linear(old, (b'{"x":', b'"\\', b""))
    assert growth.super_linear(body, (b'{"x":', b'"\\', b"")) is None


def test_what_is_linear_and_slow_is_no_finding():
    (body,) = [grown for grown in _PARSERS if grown.name == "body of x402"]
    slow = attrs.evolve(body, run=lambda data: [sign * 3 for sign in data for _ in range(20)])
    assert growth.super_linear(slow, (b"", b"a", b"")) is None
