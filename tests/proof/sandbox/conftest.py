"""Here each sandbox has its own processes, which are under test."""

import pytest


@pytest.fixture(autouse=True)
def _own_processes(sandboxes_of_their_own: None) -> None:
    pass
