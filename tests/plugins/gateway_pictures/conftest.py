"""Skips the tests of real models if they are not installed."""

import pytest

import gateway_pictures

REASON = gateway_pictures.why_off()


def pytest_collection_modifyitems(items):
    mark = pytest.mark.skip(reason=f"the models are missing: run `make models` ({REASON})")
    here = __file__.removesuffix("conftest.py")
    for item in items:
        if REASON and str(item.path).startswith(here) and "without_models" not in item.name:
            item.add_marker(mark)
