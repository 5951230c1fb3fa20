"""These tests make their databases themselves, whatever the run asks for."""

import pytest


@pytest.fixture(autouse=True)
def _chosen_database():
    pass
