"""Dates, times and numbers reach the voice in a form that it reads rightly."""

import calendar

import pytest

from gateway_speech.child import reading

MINUTES = [(hour, minute) for hour in range(24) for minute in range(60)]
DAYS = [
    (month, day)
    for month in range(1, 13)
    for day in range(1, calendar.monthrange(2024, month)[1] + 1)
]


def changed(texts):
    return [text for text in texts if reading.spoken(text) != text]


def test_the_voice_gets_every_minute_of_the_clock_as_it_is():
    for hour, minute in MINUTES:
        forms = (
            f"at {hour}:{minute:02}.",
            f"({hour % 12 or 12}:{minute:02} pm)",
            f"{hour:02}:{minute:02}:{minute:02} or {hour:02}:{minute:02}am",
            f"2024-03-05 {hour:02}:{minute:02}",
        )
        assert changed(forms) == []


def test_the_voice_gets_every_day_of_a_year_as_it_is():
    for month, day in DAYS:
        name, short = calendar.month_name[month], calendar.month_abbr[month]
        forms = (
            f"on 2024-{month:02}-{day:02}.",
            f"{month:02}/{day:02}/2024 and {day}/{month}/1999 and {month}/{day}/24",
            f"{name} {day}, 2024 and {short}. {day:02}, 1905",
            f"{day:02} {name} 2024 and {short} {day:02} 2024 10:30",
        )
        assert changed(forms) == []


def test_other_forms_of_every_day_become_those_of_the_voice():
    for month, day in DAYS:
        iso = f"2024-{month:02}-{day:02}"
        assert reading.spoken(f"on {day}.{month}.2024.") == f"on {iso}."
        assert reading.spoken(f"on 2024/{month:02}/{day:02},") == f"on {iso},"
        assert reading.spoken(f"{month:02}-{day:02}-2024") == f"{month:02}/{day:02}/2024"
        assert reading.spoken(f"{iso}T09:05:00Z") == f"{iso} at 09:05 UTC"


def test_the_voice_gets_ranges_of_years_and_numbers_as_they_are():
    for year in range(1_000, 2_100):
        assert changed([f"({year}-{year + 6})", f"{year}–{year + 1}", f"{year}-{year % 100}"]) == []
    assert changed(["ages (10 - 12) only", "pages 5-7", "5–10 people", "Room 100 200 300"]) == []
    assert (
        changed(["(1,000)", "$1,234,567,890,123", "1,000,000,000,000", "(555) and (100) 200"]) == []
    )


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("score 3-2-1", "score 3, 2, 1"),
        ("100-200-300", "100, 200, 300"),
        ("10000-20000 people", "10000 to 20000 people"),
        ("$5-$10, or -$5", "$5 to $10, or minus $5"),
        ("10:00 - 11:30", "10:00 to 11:30"),
        ("12345-6789", "1 2 3 4 5, 6 7 8 9"),
        ("0800-123-456", "0 8 0 0, 1 2 3, 4 5 6"),
        ("(202) 555-0173", "2 0 2, 5 5 5, 0 1 7 3"),
        ("1,2,3,,4", "1, 2, 3, 4"),
        (",".join(["111"] * 6), ", ".join(["1 1 1"] * 6)),
        ("₹1,00,000 and 10.000,50 €", "₹100,000 and €10,000.50"),
        ("2*3 * 4", "2 times 3 times 4"),
    ],
)
def test_a_number_is_written_as_it_is_read(text, spoken):
    assert reading.spoken(text) == spoken
