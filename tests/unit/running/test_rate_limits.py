"""Our storage of rate limits agrees with the library's own."""

import tracemalloc
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from gateway.running.limit_windows import LoopStorage
from gateway.web.front.current import client_address

# The library counts a hit that is exactly one window old, and ours does not: a client that waits
# for `Retry-After` must pass. A thousandth at each step avoids that case.
_STEP_S = 0.001
_STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 5, 59, 60, 61, 200]),
        st.sampled_from(["a", "b", "2001:db8::/64"]),
        st.integers(1, 3),
    ),
    max_size=80,
)


class _LibraryStorage(MemoryStorage):
    """The library's storage without its thread, which only removes expired entries."""

    def _MemoryStorage__schedule_expiry(self) -> None:  # noqa: N802 - the library's name
        pass


@settings(deadline=None)
@given(steps=_STEPS, amount=st.integers(1, 6), window_s=st.sampled_from([1, 5, 60]))
def test_the_verdicts_are_those_of_the_librarys_own_storage(steps, amount, window_s):
    now = [1_795_000_000.0]
    limit = RateLimitItemPerSecond(amount, window_s)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("limits.storage.memory.time", SimpleNamespace(time=lambda: now[0]))
        theirs = MovingWindowRateLimiter(_LibraryStorage())
        ours = MovingWindowRateLimiter(LoopStorage(lambda: now[0]))
        for wait_s, address, cost in steps:
            now[0] += wait_s + _STEP_S
            assert ours.hit(limit, address, cost=cost) == theirs.hit(limit, address, cost=cost)
            assert ours.test(limit, address) == theirs.test(limit, address)
            found, expected = (one.get_window_stats(limit, address) for one in (ours, theirs))
            assert found.remaining == expected.remaining
            if found.remaining < amount:
                assert found.reset_time == expected.reset_time


def test_what_a_client_puts_before_its_address_is_not_kept():
    tracemalloc.start()
    for number in range(3_000):
        padded = "x" * 15_000 + f"{number}, 203.0.113.7"
        assert client_address("10.0.0.1", padded) == "203.0.113.7"
        assert client_address("10.0.0.1", f"{number} " + "y" * 15_000) == "10.0.0.1"
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 5_000_000
