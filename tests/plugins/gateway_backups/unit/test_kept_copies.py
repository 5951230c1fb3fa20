"""Names of copies, and which copies are kept."""

import calendar
import time

import pytest

from gateway_backups.names import Copy, make_name, names_to_keep, origin_of, read_name
from gateway_backups.records import Forgotten

# A Sunday, 23:30 UTC.
NOW = calendar.timegm((2026, 11, 22, 23, 30, 0))
HOUR, DAY = 3600, 86_400
OURS = origin_of("secret")


def _copy(at: float, before: int | None = None) -> Copy:
    found = read_name(make_name(OURS, at, before))
    assert found is not None
    return found


def _ages(names: set[str], unit_s: int) -> list[int]:
    return sorted(round((NOW - read_name(name).at) / unit_s) for name in names)


def test_a_name_tells_when_and_of_which_gateway_a_copy_is():
    name = make_name(OURS, NOW)
    assert name == f"gateway-20261122T233000Z-{OURS}.db.gz"
    assert read_name(name, 5) == Copy(name=name, at=NOW, origin=OURS, size_bytes=5)
    assert _copy(NOW, before=6).before == 6
    assert origin_of("secret") != origin_of("other")
    assert "secret" not in name


@pytest.mark.parametrize(
    "name",
    [
        "gateway.db.gz",
        f"gateway-20261122T233000Z-{OURS}.db.gz.part",
        f"gateway-20261399T233000Z-{OURS}.db.gz",
        f"my-gateway-20261122T233000Z-{OURS}.db.gz",
        f"gateway-20261122T233000Z-{OURS}-before-x.db.gz",
        "",
    ],
)
def test_another_name_is_no_copy(name):
    assert read_name(name) is None


def test_every_hour_for_two_months_leaves_24_hours_7_days_5_weeks():
    kept = names_to_keep(_copy(NOW - hours * HOUR) for hours in range(60 * 24))
    ages = _ages(kept, HOUR)
    assert ages[:24] == list(range(24))
    # The newest of each day is from 23:30; the newest of each week is from Sunday.
    assert [age // 24 for age in ages[24:]] == [1, 2, 3, 4, 5, 6, 7, 14, 21, 28]


def test_copies_are_thinned_the_same_when_each_is_thinned_as_it_comes():
    kept: set[str] = set()
    for hours in reversed(range(60 * 24)):
        kept = names_to_keep([read_name(name) for name in kept] + [_copy(NOW - hours * HOUR)])
    assert len(kept) == 24 + 6 + 4
    assert max(_ages(kept, DAY)) == 28


def test_rare_copies_are_all_kept_for_long():
    """A gateway with one copy a day keeps 24 of them: each is the only one of its hour."""
    kept = names_to_keep(_copy(NOW - days * DAY) for days in range(60))
    assert _ages(kept, DAY) == [*range(24), 28]


def test_the_newest_three_from_before_migrations_are_kept_however_old():
    before = [_copy(NOW - days * DAY, before=6) for days in (400, 300, 200, 100)]
    kept = names_to_keep([*before, _copy(NOW)])
    assert kept == {_copy(NOW).name, *(copy.name for copy in before[1:])}


@pytest.mark.parametrize(
    ("payments", "seconds", "message"),
    [
        (3, 41.2, "3 payments and 41 s"),
        (1, 0.0, "1 payment and 0 s"),
        (1234, 600, "1,234 payments and 10 min"),
        (0, 5 * HOUR, "0 payments and 5 h"),
        (0, 9 * DAY, "0 payments and 9 d"),
    ],
)
def test_what_a_restore_would_forget_is_said_as_people_say_it(payments, seconds, message):
    assert str(Forgotten(payments=payments, units=0, seconds=seconds)) == message


def test_a_stamp_is_utc_whatever_the_machines_zone_is(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert read_name(make_name(OURS, NOW)).at == NOW
    finally:
        monkeypatch.undo()
        time.tzset()
