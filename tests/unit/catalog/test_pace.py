"""The pace of a provider: how many submits are allowed, and how long the next one waits."""

import math

from gateway import Traits
from gateway.catalog.upstream import Pace


def test_room_and_wait_agree(clock):
    clock.frozen_at = 1000.0
    pace = Pace(Traits(max_concurrency=3, submits_per_minute=2), clock, 4)
    assert (pace.free_submits(), pace.wait_s()) == (2, 0)
    pace.submitted()
    clock.offset_s += 10
    pace.submitted()
    assert (pace.free_submits(), pace.wait_s()) == (0, 50)
    pace.pause(55)
    assert pace.wait_s() == 55
    pace.pause(1)  # shorter than what was said before
    assert pace.wait_s() == 55
    clock.offset_s += 55
    assert (pace.free_submits(), pace.wait_s()) == (1, 0)
    with pace.slot(), pace.slot(), pace.slot():
        assert (pace.free_submits(), pace.wait_s()) == (0, math.inf)
    assert Pace(Traits(), clock, 4).free_submits() == 4
