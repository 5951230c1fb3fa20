"""Tables of the commands: the text of a cell."""

from gateway_operator.tables import print_rows


def test_what_there_is_none_of_is_an_empty_cell(capsys):
    print_rows([{"slug": "picture", "paused": None, "on sale": True}], as_json=False, wide=True)
    assert capsys.readouterr().out.split() == ["slug", "paused", "on", "sale", "picture", "yes"]
