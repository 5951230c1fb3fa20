"""Tests named by docs/security.md exist, and the first pages are short."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_limit_has_a_test_that_exists():
    page = (ROOT / "docs/security.md").read_text("utf-8")
    tests = re.findall(r"^\| .+ \| .+ \| (?!Test)(.+) \|$", page, re.MULTILINE)
    assert len(tests) > 100
    for row in tests:
        paths = re.findall(r"`(tests/\S+\.py)`", row)
        assert paths, row
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_newcomer_reads_for_fifteen_minutes():
    pages = ("README.md", "docs/architecture.md")
    assert sum(len((ROOT / page).read_text("utf-8").split()) for page in pages) <= 4_000


def test_an_entry_fits_on_one_screen():
    for entry in ("buy", "operate", "extend", "inside"):
        page = (ROOT / f"docs/{entry}.md").read_text("utf-8")
        assert len(page.split()) < 200
        assert len(page.splitlines()) < 50
