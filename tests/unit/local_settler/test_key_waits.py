"""When payments wait for a settlement key, the operator learns it."""

import pytest

from gateway.contracts import NoFreeNonce
from gateway_local_settler.waits import KeyWaits


@pytest.fixture
def waits(clock):
    return KeyWaits(clock, has_locks=True)


def sign(waits, clock, *, times, seconds=0.0, key="0xa") -> None:
    for _ in range(times):
        with waits.measured(key):
            clock.now += seconds


def find_none(waits, clock) -> None:
    """Let a key refuse a payment, because too many of its transactions are pending."""
    with pytest.raises(NoFreeNonce), waits.measured("0xa"):
        raise NoFreeNonce("0xa")
    waits.note_refused("0xa")


def slow(waits, clock) -> None:
    sign(waits, clock, times=1, seconds=0.3)


@pytest.mark.parametrize("wait", [find_none, slow])
def test_a_key_for_which_payments_wait_for_minutes_is_busy(waits, clock, wait):
    for _ in range(3):
        assert waits.find_busy() == []
        for _ in range(5):
            wait(waits, clock)
        sign(waits, clock, times=40)
        sign(waits, clock, times=40, key="0xb")
        clock.now += 60
    assert waits.find_busy() == ["0xa"]
    (condition,) = waits.find_conditions()
    assert (condition.name, condition.level, condition.raises_alarm) == ("keys_busy", "warn", True)
    assert "0xa" in condition.text
    assert "GATEWAY_SETTLEMENT_KEYS" in condition.action
    clock.now += 300
    assert waits.find_conditions() == []


def test_on_sqlite_only_a_missing_nonce_is_a_wait(clock):
    waits = KeyWaits(clock, has_locks=False)
    for _ in range(3):
        sign(waits, clock, times=9, seconds=0.3)
        clock.now += 60 - 9 * 0.3
    assert waits.find_busy() == []
    for _ in range(3):
        for _ in range(5):
            find_none(waits, clock)
        clock.now += 60
    assert waits.find_busy() == ["0xa"]


def test_an_outage_of_the_database_makes_no_key_busy(waits, clock):
    sign(waits, clock, times=20, seconds=5)
    clock.now += 60
    sign(waits, clock, times=1000)
    assert waits.find_busy() == []


def test_a_few_payments_that_wait_make_no_key_busy(waits, clock):
    for _ in range(5):
        sign(waits, clock, times=9, seconds=0.3)
        sign(waits, clock, times=91)
        clock.now += 60 - 9 * 0.3
    assert waits.find_busy() == []


def test_other_errors_are_no_waits(waits, clock):
    for _ in range(5):
        for _ in range(9):
            with pytest.raises(RuntimeError), waits.measured("0xa"):
                raise RuntimeError
        clock.now += 60
    assert waits.find_busy() == []


def test_a_key_that_is_busy_on_another_machine_is_reported_once(waits, clock):
    assert waits.find_conditions() == []
    waits.busy_anywhere = ["0xb"]
    (condition,) = waits.find_conditions()
    assert "0xb" in condition.text
