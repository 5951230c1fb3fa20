"""The formats of amounts, times and addresses on the operator's pages."""

import pytest

from gateway_operator.pages import formats


@pytest.mark.parametrize(
    ("units", "text"),
    [
        (0, "0.00"),
        (20_000, "0.02"),
        (1_000, "0.001"),
        (1, "0.000001"),
        (1_234_567_890_000, "1,234,567.89"),
        (-80_000, "\u22120.08"),
        (None, "unknown"),
    ],
)
def test_an_amount_has_two_decimals_and_more_where_it_has_more(units, text):
    assert formats.usdc(units) == text


def test_an_amount_that_is_not_known_is_not_written_as_nothing():
    for write in (formats.usdc, formats.eth, formats.micro_eth, formats.count, formats.age):
        assert write(None) == "unknown"
    assert formats.size(None) == "unknown"


def test_a_little_ether_is_not_none():
    assert formats.eth(0) == "0.000000"
    assert formats.eth(1) == "< 0.000001"
    assert formats.eth(1_234_567 * 10**12) == "1.234567"


def test_all_but_one_is_not_all():
    assert formats.percent(1.0) == "100 %"
    assert formats.percent(0.0) == "0 %"
    assert formats.percent(0.998) == "99.8 %"
    assert formats.percent(0.002) == "0.2 %"
    assert formats.percent(0.743) == "74 %"


def test_a_period_is_told_in_its_largest_unit():
    assert [formats.age(value) for value in (0, 59, 60, 7200, 200_000)] == [
        "0 s",
        "59 s",
        "1 min",
        "2 h",
        "2 d",
    ]
    assert formats.seconds(1.25) == "1.2 s"
    assert formats.seconds(90) == "2 min"


def test_a_moment_is_told_in_utc():
    at = 1_782_172_800.0
    assert formats.iso(at) == "2026-06-23T00:00:00Z"
    assert formats.utc(at) == "2026-06-23 00:00:00 UTC"
    assert (formats.clock(at), formats.day_and_clock(at)) == ("00:00:00", "23 Jun 00:00:00")


def test_an_address_keeps_its_beginning_and_its_end():
    assert formats.short("0x" + "ab" * 20) == "0xabab…abab"
    assert formats.short("short") == "short"


def test_any_text_becomes_the_id_of_an_element():
    assert formats.as_id('vendor:a"b <c>') == "vendor-a-b-c-"
