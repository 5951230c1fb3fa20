"""The wallet's limit per day holds over restarts, processes and unknown outcomes."""

import stat
import subprocess
import sys

import attrs
import pytest

from gateway_buyer.errors import NotBought
from gateway_buyer.wallet.allowance import DAY_S, Allowance

LIMIT = 100_000
RACE = """
import sys
from pathlib import Path
from gateway_buyer.errors import NotBought
from gateway_buyer.wallet.allowance import Allowance

allowance = Allowance(file=Path(sys.argv[1]), per_day_units=100_000)
got = 0
for _ in range(15):
    try:
        allowance.reserve(7_000)
        got += 1
    except NotBought as error:
        assert "for 24 hours are spent" in str(error), error
print(got)
"""


@attrs.define
class Clock:
    seconds: float = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def allowance(tmp_path, clock):
    return Allowance(file=tmp_path / "wallets" / "a.sqlite3", per_day_units=LIMIT, now=clock)


def test_it_counts_until_the_limit_and_no_further(allowance):
    allowance.reserve(60_000)
    allowance.reserve(40_000)
    with pytest.raises(NotBought, match=r"costs 0\.000001 USDC, and 0\.10 of the 0\.10 USDC"):
        allowance.reserve(1)
    assert allowance.spent() == LIMIT


def test_a_price_above_what_is_left_is_refused_before_anything_is_counted(allowance):
    allowance.reserve(60_000)
    with pytest.raises(NotBought, match="--per-day"):
        allowance.check(40_001)
    allowance.check(40_000)
    assert allowance.spent() == 60_000


def test_a_restart_forgets_nothing(allowance):
    allowance.reserve(99_999)
    again = attrs.evolve(allowance)
    with pytest.raises(NotBought):
        again.reserve(2)
    assert stat.S_IMODE(allowance.file.stat().st_mode) == 0o600


def test_what_was_not_sent_is_released(allowance):
    kept, released = allowance.reserve(50_000), allowance.reserve(50_000)
    allowance.release(released)
    assert (kept != released, allowance.spent()) == (True, 50_000)


def test_after_24_hours_it_counts_no_more(allowance, clock):
    allowance.reserve(LIMIT)
    clock.seconds += DAY_S - 1
    with pytest.raises(NotBought):
        allowance.reserve(1)
    clock.seconds += 1
    allowance.reserve(LIMIT)


def test_a_clock_that_is_set_back_frees_nothing(allowance, clock):
    allowance.reserve(LIMIT)
    clock.seconds -= 10 * DAY_S
    with pytest.raises(NotBought):
        allowance.reserve(1)


def test_two_processes_spend_no_more_than_one(tmp_path):
    file = tmp_path / "wallets" / "a.sqlite3"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ended = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ended
    assert sum(int(said) for said, _ in ended) == LIMIT // 7_000


def test_a_file_that_cannot_be_written_stops_the_purchase(allowance):
    allowance.file.parent.mkdir()
    allowance.file.write_text("not a database, but longer than a header of sqlite")
    with pytest.raises(NotBought, match=r"Nothing was signed: .* cannot be used"):
        allowance.reserve(1)


def test_a_limit_of_nothing_buys_nothing(allowance):
    with pytest.raises(NotBought):
        attrs.evolve(allowance, per_day_units=0).reserve(1)
