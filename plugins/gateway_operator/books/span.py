"""The period of the books: whole days of UTC."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import attrs

from gateway.errors import WrongValue

DAY_S = 86_400
# Ten years; more is a typing error.
_MAX_DAYS = 3_660
_DEFAULT_DAYS = 30


@attrs.frozen(kw_only=True)
class Span:
    """Whole days from `first` to `last`, in UTC."""

    first: date
    last: date

    @property
    def since(self) -> float:
        """The first moment, in Unix seconds."""
        return begin_of(self.first)

    @property
    def until(self) -> float:
        """The first moment after it, in Unix seconds."""
        return begin_of(self.last) + DAY_S

    def days(self) -> Iterator[date]:
        """Yield each day."""
        for number in range((self.last - self.first).days + 1):
            yield self.first + timedelta(days=number)


def begin_of(day: date) -> float:
    """Return a day's first moment, in Unix seconds."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def day_of(at: float) -> date:
    """Return the day of a moment in Unix seconds."""
    return datetime.fromtimestamp(at, UTC).date()


def read_span(first: str | None, last: str | None, now: float) -> Span:
    """Return the period between two days such as 2026-11-30; by default the last 30 days.

    Raises `WrongValue`.
    """
    today = day_of(now)
    end = _read_day(last) if last else today
    begin = _read_day(first) if first else end - timedelta(days=_DEFAULT_DAYS - 1)
    if begin > end:
        raise WrongValue(f"The first day, {begin}, is after the last one, {end}.")
    if (end - begin).days >= _MAX_DAYS:
        raise WrongValue("The books show at most ten years. Choose a later first day.")
    return Span(first=begin, last=end)


def _read_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise WrongValue(f"{text[:20]!r} is not a date. Write it as 2026-11-30.") from None
