"""The chart of the overview: its bars add up to the revenue, and texts in it stay texts."""

import re

from gateway_operator.pages.chart import OTHERS, draw, make_chart, merge
from gateway_operator.sql.sums import Period, SalesBar

PERIOD = Period(since=1_782_172_800.0, step_s=3600.0, bars=4)


def bar(slug="picture", place=0, taken=20_000, back=0, **more) -> SalesBar:
    return SalesBar(
        slug=slug,
        bar=place,
        sold=1,
        taken_units=taken,
        back=1 if back else 0,
        back_units=back,
        completed=1,
        costed=0,
        cost_micros=0,
        **more,
    )


def test_each_bar_adds_up_to_what_was_taken():
    chart = make_chart(PERIOD, [bar(), bar("paper", taken=30_000, back=10_000), bar(place=3)])
    assert chart.keys == ["paper", "picture"]
    assert [one.total for one in chart.bars] == [50_000, 0, 0, 20_000]
    assert (chart.bars[0].kept, chart.bars[0].back) == (
        {"picture": 20_000, "paper": 20_000},
        10_000,
    )


def test_a_phone_sees_the_same_sum_in_half_as_many_bars():
    chart = make_chart(PERIOD, [bar(), bar(place=1, back=5_000), bar(place=3)])
    half = merge(chart, 2)
    assert [one.total for one in half.bars] == [40_000, 20_000]
    assert [one.at for one in half.bars] == [PERIOD.start_of(0), PERIOD.start_of(2)]


def test_of_many_endpoints_the_ones_that_took_most_have_a_colour_of_their_own():
    sold = [bar(f"e{n}", taken=n * 1000) for n in range(1, 9)]
    chart = make_chart(PERIOD, sold)
    assert chart.keys == ["e5", "e6", "e7", "e8", OTHERS]
    assert chart.bars[0].kept[OTHERS] == 10_000


def test_what_goes_back_is_hatched_and_told_in_words():
    svg = draw(make_chart(PERIOD, [bar(back=20_000)]), name="wide", width=720, height=176)
    assert '<rect class="back"' in svg
    assert 'id="hatch-wide"' in svg
    assert "owed or given back 0.02" in svg
    assert "00:00: 0.02 USDC" in svg


def test_every_bar_stays_inside_of_the_scale():
    svg = draw(make_chart(PERIOD, [bar(taken=123_456_789)]), name="wide", width=720, height=176)
    heights = [float(found) for found in re.findall(r'<rect class="s0"[^>]*height="([\d.]+)"', svg)]
    assert heights
    assert max(heights) <= 176


def test_a_hostile_slug_stays_a_text():
    svg = draw(make_chart(PERIOD, [bar("<script>x</script>")]), name="w", width=372, height=150)
    assert "<script>" not in svg
    assert "&lt;script&gt;" in svg
