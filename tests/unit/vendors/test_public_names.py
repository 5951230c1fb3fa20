"""`gateway.vendors` exports the names of the kit, documented."""

import ast
import inspect

import pytest

from gateway import vendors


@pytest.mark.parametrize("name", vendors.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name):
    thing = getattr(vendors, name)
    assert not inspect.ismodule(thing)
    assert thing.__doc__


def test_another_name_is_none():
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        _ = vendors.nothing_of_ours


def test_the_example_in_the_docstring_is_python():
    lines = inspect.getdoc(vendors).splitlines()
    example = "\n".join(line[4:] for line in lines if line.startswith("    ") or not line)
    assert {type(node) for node in ast.parse(example).body} == {
        ast.Assign,
        ast.AsyncFunctionDef,
        ast.FunctionDef,
    }
    used = {node.id for node in ast.walk(ast.parse(example)) if isinstance(node, ast.Name)}
    assert used & set(vendors.__all__) == {
        "Model",
        "Outbound",
        "as_object",
        "as_text",
        "base_url",
        "models_on_sale",
        "picture_endpoint",
    }
