"""The package's public names: each is imported on first use, and no other name exists."""

import pickle

import pytest

import gateway
from gateway.domain import records


@pytest.mark.parametrize("name", gateway.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(gateway, name) is not None


def test_a_name_that_is_asked_for_twice_is_the_same_thing():
    assert gateway.Block is gateway.Block is records.Block


def test_another_name_cannot_be_imported():
    with pytest.raises(ImportError, match="nothing_of_ours"):
        from gateway import nothing_of_ours  # noqa: F401


def test_what_the_public_names_make_can_be_pickled():
    block = gateway.Block(number=7, hash="0x" + "b" * 64, timestamp=1)
    assert pickle.loads(pickle.dumps(block)) == block
