"""Shared by the tests of PostgreSQL."""

from collections.abc import Iterator

import attrs
import pytest

from gateway_nodes.postgres.session import POSTGRESQL, Session


@pytest.fixture(autouse=True)
def _chosen_database() -> None:
    """Let these tests manage the databases, whatever the run asks for."""


@pytest.fixture(autouse=True, scope="module")
def _own_clock() -> Iterator[None]:
    """Let the test's movable clock decide leases; `test_clocks.py` uses the database's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "dialect", attrs.evolve(POSTGRESQL, is_shared=False))
        yield
