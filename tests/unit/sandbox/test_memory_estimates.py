"""The memory that a call reserves, estimated from earlier ones."""

import pytest

from gateway.sandbox.child import machine
from gateway.sandbox.memory_budget import MemoryBudget
from gateway.sandbox.process import Usage
from tests.unit.sandbox.memory_calls import MB, Warmed


def test_a_child_reserves_its_limit_until_one_of_its_kind_has_ended():
    sandbox = Warmed(MemoryBudget(600 * MB), "read")
    assert sandbox.reserve().need_bytes == 600 * MB
    sandbox.learn(peak=80, size=1000)
    assert sandbox.reserve(size=1000).need_bytes == 108 * MB
    assert sandbox.reserve(size=10).need_bytes == 108 * MB
    # A larger input may take as much more.
    assert sandbox.reserve(size=2000).need_bytes == 208 * MB
    assert sandbox.reserve(size=100_000).need_bytes == 600 * MB
    sandbox.learn(peak=40, size=100_000)
    assert 100 * MB < sandbox.reserve(size=100_000).need_bytes < 108 * MB
    assert sandbox.reserve(size=100_000, most=100).need_bytes == 100 * MB


def test_small_inputs_that_took_much_are_forgotten_by_usual_ones():
    sandbox = Warmed(MemoryBudget(600 * MB), "read")
    sandbox.learn(peak=30, size=300_000)
    usual = sandbox.reserve(size=300_000).need_bytes
    sandbox.learn(peak=550, size=900)
    assert sandbox.reserve(size=300_000).need_bytes == 600 * MB
    for _ in range(80):
        sandbox.learn(peak=30, size=300_000)
    assert sandbox.reserve(size=300_000).need_bytes < usual + MB


@pytest.mark.parametrize("peak_bytes", [-(10**30), 1, 10**306])
def test_a_reported_peak_counts_within_the_limits_of_the_child(peak_bytes):
    sandbox = Warmed(MemoryBudget(600 * MB), "read")
    sandbox.report(peak_bytes, most=200)
    assert 0 < sandbox.reserve(size=1000).need_bytes <= 200 * 1.25 * MB + 8 * MB
    assert sandbox.reserve(size=10**15).need_bytes <= 600 * MB


@pytest.mark.parametrize("used", ["-1 0", "nan 0", "1e999 0", "0.1 many", "0.1"])
def test_a_report_without_plain_numbers_does_not_count(used):
    with pytest.raises(ValueError):
        Usage.parse(f"done\n{used}".encode())


def test_an_unusual_peak_is_forgotten_slowly():
    sandbox = Warmed(MemoryBudget(600 * MB), "read")
    sandbox.learn(peak=400)
    sandbox.learn(peak=40)
    assert 400 * MB < sandbox.reserve().need_bytes < 600 * MB
    for _ in range(60):
        sandbox.learn(peak=40)
    assert sandbox.reserve().need_bytes < 70 * MB


def test_a_machine_has_its_memory_less_the_gateways(monkeypatch):
    budget = MemoryBudget(1)
    for whole, own in ((16_000, 15_650), (1_000, 650), (512, 256)):
        monkeypatch.setattr(machine, "find_memory_bytes", lambda whole=whole: whole * MB)
        budget.resize(0)
        assert budget.total_bytes == own * MB
    budget.resize(400 * MB)
    assert budget.total_bytes == 400 * MB
