"""`--help` and mistyped options of the examples ask nothing and buy nothing."""

import sys

import pytest

from tests.proof.clients.examples.conftest import EXAMPLES, run

PYTHON = sorted(path.name for path in EXAMPLES.glob("*.py"))
NODE = sorted(path.name for path in EXAMPLES.glob("*.mjs"))
MISTYPED = [["--hlep"], pytest.param(["a", "boat"], marks=pytest.mark.full)]


def in_gate(examples, one):
    """Mark all but one example as tests of the long proofs: they read options alike."""
    marks = {name: () if name == one else pytest.mark.full for name in examples}
    return [pytest.param(name, marks=mark) for name, mark in marks.items()]


@pytest.fixture
def begin(httpserver, tmp_path):
    """Returns a function that runs an example whose addresses lead to a server without answers."""
    url = httpserver.url_for("").rstrip("/")

    async def type_in(*command):
        return await run(*command, folder=tmp_path, GATEWAY=url, RPC=url, PORT="0")

    return type_in


@pytest.mark.full
@pytest.mark.parametrize("example", in_gate(PYTHON, "buy.py"))
async def test_help_of_a_python_example(begin, httpserver, example):
    ran = await begin(sys.executable, EXAMPLES / example, "--help")
    assert ran.code == 0, ran.complained
    assert ran.said.startswith(f"usage: {example}")
    assert httpserver.log == []


@pytest.mark.full
@pytest.mark.parametrize("words", MISTYPED)
async def test_mistyped_words_of_a_python_example(begin, httpserver, words):
    ran = await begin(sys.executable, EXAMPLES / "buy.py", *words)
    assert ran.code == 2
    assert "unrecognized arguments" in ran.complained
    assert httpserver.log == []


@pytest.mark.full
@pytest.mark.parametrize("example", in_gate(NODE, "buy.mjs"))
async def test_help_of_a_node_example(begin, script, httpserver, example):
    ran = await begin("node", script(example), "--help")
    assert ran.code == 0, ran.complained
    assert ran.said.startswith("Usage: ")
    assert httpserver.log == []


@pytest.mark.full
@pytest.mark.parametrize("words", MISTYPED)
async def test_mistyped_words_of_a_node_example(begin, script, httpserver, words):
    ran = await begin("node", script("buy.mjs"), *words)
    assert ran.code != 0
    assert httpserver.log == []
