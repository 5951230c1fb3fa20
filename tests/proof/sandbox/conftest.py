"""Here each sandbox has processes of its own: they are what is tested."""

import pytest


@pytest.fixture(autouse=True)
def _own_processes(sandboxes_of_their_own: None) -> None:
    pass
