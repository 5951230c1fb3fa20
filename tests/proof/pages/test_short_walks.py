"""The list of walks that `make test` makes names tests that exist."""

from pathlib import Path

import pytest

from tests.proof.pages.conftest import SHORT_WALKS


@pytest.mark.parametrize("module", SHORT_WALKS)
def test_every_walk_of_the_short_form_is_a_test(module):
    text = (Path(__file__).parent / f"{module}.py").read_text()
    names = {walk.partition("[")[0] for walk in SHORT_WALKS[module]}
    assert {name for name in names if f"def {name}(" not in text} == set()
