"""Fixtures of the unit tests of payments."""

from types import SimpleNamespace

import pytest

from gateway.contracts.nodes import OneNode
from gateway.payments.accept import Acceptance


@pytest.fixture
def acceptance() -> Acceptance:
    return Acceptance(
        store=SimpleNamespace(nodes=OneNode()),
        chain=None,
        now=lambda: 0.0,
        born_at=0.0,
        check_serving=None,
        check_maker=None,
        check_wallet=None,
    )
