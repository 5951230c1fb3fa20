"""Little patience with a facilitator's answer."""

import pytest

from gateway_facilitator_settler import FacilitatorTiming


@pytest.fixture
def facilitator_timing():
    return FacilitatorTiming(answer_s=0.3)
