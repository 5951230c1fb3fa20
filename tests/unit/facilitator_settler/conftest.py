"""Short timeouts for a facilitator's response."""

import pytest

from gateway_facilitator_settler.settler import FacilitatorTiming


@pytest.fixture
def facilitator_timing():
    return FacilitatorTiming(answer_s=0.3)
