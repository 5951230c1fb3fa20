"""The test kit's public names, which stay although the kit is in a plugin."""

import ast
import importlib
from pathlib import Path

import pytest

import gateway.testing
import gateway_testing


@pytest.mark.parametrize("name", gateway.testing.__all__)
def test_every_name_of_the_kit_can_be_imported(name):
    assert getattr(gateway.testing, name).__module__.startswith("gateway_testing.")


def test_type_checkers_read_the_same_names_from_the_same_places():
    stub = ast.parse(Path(gateway.testing.__file__).with_suffix(".pyi").read_text())
    shown = {name.asname: line.module for line in stub.body for name in line.names}
    places = {name: f"gateway_testing.{each}" for name, each in gateway_testing._PLACES.items()}
    assert shown == places


def test_a_module_of_the_kit_is_the_same_by_both_names():
    by_old_name = importlib.import_module("gateway.testing.provider.samples")
    by_name = importlib.import_module("gateway_testing.provider.samples")
    assert by_old_name is by_name
    assert by_name.__name__ == by_name.__spec__.name == "gateway_testing.provider.samples"


def test_a_module_that_the_kit_does_not_have_cannot_be_imported():
    with pytest.raises(ModuleNotFoundError, match=r"gateway_testing\.nothing"):
        importlib.import_module("gateway.testing.nothing")


def test_a_name_that_the_kit_does_not_have_cannot_be_imported():
    with pytest.raises(ImportError, match="nothing_of_ours"):
        from gateway.testing import nothing_of_ours  # noqa: F401


def test_the_contract_of_a_store_says_where_it_is():
    with pytest.raises(AttributeError, match="tests/store_contract"):
        gateway.testing.StoreContract  # noqa: B018
