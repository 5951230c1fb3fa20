"""What the tests of PostgreSQL share."""

from collections.abc import Iterator

import attrs
import pytest

from gateway_nodes.postgres.session import POSTGRESQL, Session


@pytest.fixture(autouse=True)
def _chosen_database() -> None:
    """Leave the databases to these tests, whatever the run asks for."""


@pytest.fixture(autouse=True, scope="module")
def _own_clock() -> Iterator[None]:
    """Let the test's clock decide leases, which it moves; `test_clocks.py` has the database's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "dialect", attrs.evolve(POSTGRESQL, is_shared=False))
        yield
