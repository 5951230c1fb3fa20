"""docs/links.py, on pages of its own."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("links", Path(__file__).parents[3] / "docs/links.py")
links = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(links)

TARGET = "# A page\n\n## Terms & words\n\n## `gateway check`\n\n## Terms & words\n"


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "-C", tmp_path, "init", "--quiet"], check=True)
    (tmp_path / "docs/images").mkdir(parents=True)
    (tmp_path / "docs/target.md").write_text(TARGET)
    (tmp_path / "docs/images/chart.png").write_bytes(b"")
    return tmp_path


def dead(root: Path, text: str) -> list[str]:
    links.anchors.cache_clear()
    (root / "docs/page.md").write_text(text)
    return list(links.dead_links(root, links.tracked(root)))


@pytest.mark.parametrize(
    "text",
    [
        "[a](target.md) [b](target.md#a-page) [c](#here)\n\n# Here\n",
        "[a](target.md#terms--words) [b](target.md#terms--words-1) [c](target.md#gateway-check)",
        "[two\nlines](../docs/target.md)",
        "[outside](https://example.org/nothing) [mail](mailto:a@example.org)",
        '<img src="images/chart.png"> ![chart](images/chart.png)',
        "`[code](nothing.md)`\n\n```md\n[code](nothing.md)\n```\n",
    ],
)
def test_links_that_resolve_pass(repository, text):
    assert dead(repository, text) == []


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("text\n\n[a](nothing.md)", "3: nothing.md: no such file."),
        ("[`a`](nothing.md#a)", "1: nothing.md#a: no such file."),
        ('[a](nothing.md "title")', "1: nothing.md: no such file."),
        ("[a]: nothing.md", "1: nothing.md: no such file."),
        ('<img width="9" src="no.png">', "1: no.png: no such file."),
        ("[a](../../target.md)", "1: ../../target.md: no such file."),
        ("[a](Target.md)", "1: Target.md: no such file."),
        ("[a](#nowhere)", "1: #nowhere: no such heading in docs/page.md."),
        ("[a](target.md#terms)", "1: target.md#terms: no such heading in docs/target.md."),
        (
            "[a](target.md#terms--words-2)",
            "1: target.md#terms--words-2: no such heading in docs/target.md.",
        ),
        ("[a](images)", "1: images: a folder has no page: link to its README.md."),
    ],
)
def test_a_dead_link_is_found_with_its_place(repository, text, finding):
    assert dead(repository, text) == [f"docs/page.md:{finding}"]


def test_a_link_to_a_file_that_git_ignores_is_dead(repository):
    (repository / ".gitignore").write_text("draft.md\n")
    (repository / "docs/draft.md").write_text("# Draft\n")
    assert dead(repository, "[a](draft.md)") == ["docs/page.md:1: draft.md: no such file."]


def test_each_page_belongs_to_exactly_one_entry(repository):
    for entry in links.ENTRIES:
        (repository / "docs" / entry).write_text("# Entry\n\nSee [target](target.md).\n")
    (repository / "docs/second.md").write_text("# Second\n")
    for entry in links.ENTRIES[:2]:
        (repository / "docs" / entry).write_text("# Entry\n\n- [Second](second.md): twice\n")
    found = list(links.entry_faults(repository, links.tracked(repository)))
    assert [each.partition(" of the")[0] for each in found] == [
        "docs/second.md: 2",
        "docs/target.md: 0",
    ]


def test_the_menu_has_the_entries_titles_in_their_order(repository):
    for entry in links.ENTRIES:
        (repository / "docs" / entry).write_text("# Entry\n")
    (repository / "docs/buy.md").write_text("- [B](target.md): b\n- [A](../README.md): a\n")
    assert list(links.entry_pages(repository)["buy.md"].items()) == [
        ("docs/target.md", "B"),
        ("README.md", "A"),
    ]
