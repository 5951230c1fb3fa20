"""A stranger's text is one short line of characters that a person sees."""

import pytest

from gateway_buyer.answers import shorten


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n\n b\tc", "a b c"),
        ("a\u2028Gateway: b\u2029c\x85d\x0be", "a Gateway: b c d e"),
        ("\x1b[2Ja\rb\x9b1m", "[2Ja b 1m"),
        ("\u202egnp.exe", "gnp.exe"),
        ("a\u200b\ufeff\u2060\xad\U000e0041b", "ab"),
        ("a" + "\u3164\u2800\u115f\uffa0\ufe0f\U000e0100\u180b" * 9 + "b", "ab"),
        ("Bär & 北, 5 €", "Bär & 北, 5 €"),
        ("\ud800x", "x"),
        ("x" * 301, "x" * 300 + "…"),
    ],
)
def test_what_nobody_sees_is_left_out(text, shown):
    assert shorten(text) == shown
