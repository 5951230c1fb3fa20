"""The operator's colour is kept if readable, else replaced by the nearest readable shade."""

import re

import pytest

from gateway_shop.brand import contrast, stylesheet

PAPERS = ((251, 250, 247), (18, 24, 31))


def tones(sheet: str) -> list[tuple[int, int, int]]:
    """Accent and its text, for light and then dark."""
    return [tuple(bytes.fromhex(digits)) for digits in re.findall(r"#([0-9a-f]{6})", sheet)]


@pytest.mark.parametrize("color", ["#0f766e", "#FFFF00", "#000000", "#ffffff", "#7f7f7f"])
def test_every_colour_can_be_read_on_both_papers_and_under_its_own_text(color):
    light, on_light, dark, on_dark = tones(stylesheet(color))
    assert contrast(light, PAPERS[0]) >= 4.5
    assert contrast(dark, PAPERS[1]) >= 4.5
    assert contrast(light, on_light) >= 4.5
    assert contrast(dark, on_dark) >= 4.5


def test_a_colour_that_can_be_read_stays_as_it_is():
    assert "--accent:#0f766e" in stylesheet("#0f766e")


def test_contrast_is_that_of_wcag():
    assert contrast((255, 255, 255), (0, 0, 0)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)
