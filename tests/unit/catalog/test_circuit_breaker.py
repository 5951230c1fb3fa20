"""The circuit breaker: when it opens, when a probe is due, and when a trial succeeds."""

import pytest

from gateway.catalog.circuit_breaker import CircuitBreaker


@pytest.fixture
def circuit(clock):
    clock.frozen_at = 1_000_000.0
    return CircuitBreaker("acme", clock)


def test_five_failures_in_a_row_of_two_tasks_open_it(circuit):
    for number in range(4):
        circuit.failed("Transient", f"task-{number % 2}")
        assert not circuit.is_open
    circuit.failed("Transient", "task-0")
    assert (circuit.is_open, circuit.problem) == (True, "Transient")


def test_one_buyers_odd_request_does_not_open_it(circuit):
    for _ in range(50):
        circuit.failed("KeyError", "task-1")
    assert not circuit.is_open
    circuit.failed("KeyError", "task-2")
    assert circuit.is_open


def test_a_success_in_between_starts_the_count_anew(circuit):
    for _ in range(20):
        for number in range(4):
            circuit.failed("Transient", f"task-{number}")
        circuit.succeeded()
    assert not circuit.is_open


def test_an_account_problem_opens_it_at_once(circuit, clock):
    circuit.trip("402: top up")
    assert (circuit.is_open, circuit.problem, circuit.open_s) == (True, "402: top up", 0)
    clock.offset_s += 29.9
    assert not circuit.is_due
    clock.offset_s += 0.1
    assert (circuit.is_due, circuit.open_s) == (True, 30)


def test_pauses_between_probes_grow_to_half_an_hour_and_stay_there(circuit, clock):
    circuit.trip("402")
    pauses = []
    for _ in range(2000):  # more than any power of two holds as a float
        began = clock()
        clock.offset_s += circuit.probe_at - clock()
        pauses.append(clock() - began)
        circuit.stay_open("still 402")
    assert pauses[:8] == [30, 60, 120, 240, 480, 960, 1800, 1800]
    assert set(pauses[8:]) == {1800}
    assert circuit.problem == "still 402"


def test_on_trial_one_failure_opens_it_again_for_longer(circuit, clock):
    circuit.trip("402")
    clock.offset_s += 30
    circuit.try_again()
    assert not circuit.is_open
    circuit.failed("Transient", "task-9")
    assert circuit.is_open
    clock.offset_s += 59
    assert not circuit.is_due
    assert circuit.open_s == 89  # the trial in between included
    clock.offset_s += 1
    assert circuit.is_due


def test_on_trial_a_task_that_failed_before_proves_nothing_new(circuit):
    for number in range(5):
        circuit.failed("JobFailed", f"odd-{number}")
    for _ in range(3):
        circuit.try_again()
        for number in range(4):
            circuit.failed("JobFailed", f"odd-{number}")
            assert not circuit.is_open
        circuit.failed("JobFailed", "odd-4")  # five in a row are as many as ever
        assert circuit.is_open
    circuit.try_again()
    circuit.failed("JobFailed", "another")
    assert circuit.is_open


def test_after_a_success_a_task_that_failed_before_is_new_again(circuit):
    circuit.failed("JobFailed", "odd")
    circuit.succeeded()
    circuit.trip("402")
    circuit.try_again()
    circuit.failed("JobFailed", "odd")
    assert circuit.is_open


def test_a_success_on_trial_closes_it_for_good(circuit):
    circuit.trip("402")
    circuit.try_again()
    circuit.succeeded()
    circuit.failed("Transient", "task-9")
    assert (circuit.is_open, circuit.open_s) == (False, 0)
    circuit.trip("402")
    assert circuit.open_s == 0  # a story of its own


def test_what_was_under_way_when_it_opened_does_not_close_it(circuit):
    circuit.trip("402")
    circuit.succeeded()
    assert circuit.is_open
    circuit.try_again()
    circuit.failed("Transient", "task-9")
    assert circuit.is_open


def test_a_second_problem_does_not_prolong_it(circuit, clock):
    circuit.trip("402")
    clock.offset_s += 20
    circuit.trip("403", pause_s=5000)
    clock.offset_s += 10
    assert (circuit.is_due, circuit.problem) == (True, "402")


def test_an_account_problem_told_while_an_outage_lasts_prolongs_the_rest(circuit, clock):
    circuit.trip("502")
    assert not circuit.is_account
    circuit.trip("402", pause_s=900, is_account=True)
    assert (circuit.problem, circuit.is_account) == ("402", True)
    clock.offset_s += 899
    assert not circuit.is_due
    circuit.trip("401", pause_s=9000, is_account=True)
    clock.offset_s += 1
    assert (circuit.is_due, circuit.problem) == (True, "402")
    circuit.stay_open("502")
    assert circuit.is_account
    circuit.try_again()
    assert not circuit.is_account
