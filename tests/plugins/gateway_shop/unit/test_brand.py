"""The operator's colour is kept if readable, else replaced by the nearest readable shade."""

import re
from pathlib import Path

import pytest

from gateway_shop.brand import Brand, _mix, contrast, stylesheet

ROOT = Path(__file__).parents[4]
COLORS = ["#0f766e", "#FFFF00", "#000000", "#ffffff", "#7f7f7f", "#ff0000", "#12181f", "#00c8ff"]


def read_rules(sheet: str) -> list[dict[str, tuple[int, int, int]]]:
    """The colours by name, of the light pages and then of the dark ones."""
    blocks = re.findall(r":root\s*{([^}]*)}", sheet)
    found = [re.findall(r"--([\w-]+):\s*#([0-9a-f]{6}|[0-9a-f]{3})\b", block) for block in blocks]
    return [{name: _read(digits) for name, digits in block} for block in found]


def _read(digits: str) -> tuple[int, int, int]:
    whole = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    return tuple(bytes.fromhex(whole))


GROUNDS = read_rules((ROOT / "frontend" / "src" / "styles.css").read_text())


@pytest.mark.parametrize("color", [*COLORS, ""])
def test_every_colour_can_be_read_on_every_background_of_the_stylesheet(color):
    """So can the stylesheet's own colour, which is the empty one."""
    chosen = read_rules(stylesheet(color)) if color else GROUNDS
    for pages, rules in zip(GROUNDS, chosen, strict=True):
        accent = rules["accent"]
        grounds = [pages[name] for name in ("paper", "card", "sunk")]
        for ground in [*grounds, _mix(pages["card"], accent, 0.12)]:
            assert contrast(accent, ground) >= 4.5
        # A button, and the same below the pointer.
        for button in (accent, _mix(rules["off-accent"], accent, 0.88)):
            assert contrast(button, rules["on-accent"]) >= 4.5


def test_the_operator_is_told_what_buyers_see():
    said = Brand(color="#ffee00", logo=None, logo_url="").describe()
    assert "#ffee00 alone would be hard to read, so buyers see #756d00 on light pages" in said
    assert "dark pages" not in said


def test_a_colour_that_can_be_read_stays_as_it_is():
    assert "--accent:#0f766e" in stylesheet("#0f766e")


def test_contrast_is_that_of_wcag():
    assert contrast((255, 255, 255), (0, 0, 0)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)
