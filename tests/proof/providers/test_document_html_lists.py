"""Lists of HTML pages whose content is outside of their items, as browsers show them."""

import pytest

from gateway_documents.child import libraries, parsing


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(html):
    return parsing.parse("html", html.encode()).pages[0]


@pytest.mark.parametrize(
    "inner",
    [
        "<ul><li>b</li></ul>",
        "<!-- Word --> <ul><li>b</li></ul>",
        "<br><ul><li>b</li></ul>",
        "<div><ul><li>b</li></ul></div>",
        "<span><div><ul><li>b</li></ul></div></span>",
        "<dir><li>b</li></dir>",
        "<ul><ul><li>b</li></ul></ul>",
    ],
)
def test_a_list_in_a_list_belongs_to_the_item_before(inner):
    for place in ("<ul><li>a</li>{}<li>c</li></ul>", "<ul><li>a{}</li><li>c</li></ul>"):
        lines = parsed(place.format(inner)).splitlines()
        assert [line.rstrip() for line in lines if line.strip()] == ["- a", "  - b", "- c"]


def test_lists_of_several_kinds_and_depths():
    html = "<p>Duties</p><ol><li>one</li><ul><li>x</li><ol><li>y</li><li>z</li></ol></ul>"
    assert parsed(f"{html}<li>two</li></ol>") == (
        "Duties\n\n1. one\n   - x\n     1. y\n     2. z\n2. two"
    )


def test_two_lists_behind_one_item():
    html = "<ul><li>a</li><ul><li>b</li></ul><ul><li>c</li></ul><li>d</li></ul>"
    assert parsed(html) == "- a\n  - b\n  - c\n- d"


def test_a_list_before_the_first_item_keeps_its_depth():
    assert parsed("<ul><ul><li>a</li></ul><li>b</li></ul>") == "- - a\n- b"
    assert parsed("<ul><ul><ul><li>a</li></ul></ul></ul>") == "- a"


def test_items_in_blocks_are_items_of_one_list():
    html = "<ol><div><li>a</li></div><div><li>b</li><ul><li>c</li></ul></div></ol>"
    assert parsed(html) == "1. a\n2. b\n   - c"


def test_text_between_items_belongs_to_the_item_before():
    html = "<ul>Before<li>a</li>text<p>more</p><li>b</li></ul>"
    assert parsed(html) == "Before\n\n- a\n\n  text\n\n  more\n- b"


def test_a_table_in_a_list_stays_whole():
    table = "<table><tr><td>1</td><td><ul><li>x</li></ul></td></tr></table>"
    assert parsed(f"<ul><li>a</li>{table}</ul>") == ("- a\n\n  | 1 | - x |\n  | --- | --- |")


def test_many_stray_lists_are_repaired():
    items = "".join(f"<li>{at}</li><ul><li>in {at}</li></ul>" for at in range(5_000))
    assert parsed(f"<ul>{items}</ul>").endswith("- 4999\n  - in 4999")
