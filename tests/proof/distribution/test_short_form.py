"""`make test` plays the same few rows of a long table each time, and short tables whole."""

from types import SimpleNamespace

from tests.short_form import left_out


def rows(count):
    return [SimpleNamespace(nodeid=f"tests/proof/test_a.py::test_b[{row}]") for row in range(count)]


def test_a_short_table_is_played_whole():
    assert left_out(rows(4)) == []


def test_of_a_long_table_a_quarter_is_played_and_at_least_four():
    assert [count - len(left_out(rows(count))) for count in (5, 16, 100)] == [4, 4, 25]


def test_another_order_of_the_rows_leaves_out_the_same():
    assert left_out(rows(30)) == left_out(rows(30)[::-1])
