"""The saved corpus: inputs that once caused harm, and close variants."""

from pathlib import Path

import pytest

from tests.proof.fuzz import kinds

_FOLDER = Path(__file__).parent / "corpus"
_FILES = sorted(_FOLDER.glob("*.json"))
_KINDS = {
    "bodies": ("body, parsed",),
    "headers": ("header, parsed", "MPP credential, parsed"),
    "answers": ("RPC answer, parsed", "receipt, direct flow"),
    "asks": ("path and query",),
}


def _entries() -> list:
    return [
        pytest.param(file.stem, value, id=f"{file.stem}: {why}")
        for file in _FILES
        for why, value in kinds.load(file.read_text())
    ]


@pytest.mark.parametrize(("fed", "value"), _entries())
def test_an_input_of_the_corpus_meets_documented_errors_only(every, fed, value):
    for name in _KINDS[fed]:
        assert every[name].run(value)


def test_the_corpus_has_every_kind_of_input():
    assert {file.stem for file in _FILES} == set(_KINDS)
