"""Links of pages resolve, tests named by docs/security.md exist, and the first pages are short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [
    page
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "bench/README.md"])
    if "node_modules" not in page.parts
]
LINK = re.compile(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")
CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def text_of(page: Path) -> str:
    return CODE.sub("", page.read_text("utf-8"))


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_resolves(page):
    broken = []
    for found in LINK.findall(text_of(page)):
        link = "".join(found)
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


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
