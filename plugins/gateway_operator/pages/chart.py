"""A stacked bar chart as SVG: no script, and readable without colour."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import attrs
from markupsafe import Markup, escape

from gateway_operator.desk.wording import usdc
from gateway_operator.sql.sums import Period, SalesBar

OTHERS = "others"
# If there are more endpoints, the rest share a colour.
_MAX_KEYS = 5
_DAY_S = 86_400
_LEFT = 44.0
_RIGHT = 4.0
_TOP = 8.0
_BOTTOM = 22.0
# Free share of a bar's slot on each side.
_GAP = 0.14
_MIN_UNITS = 10_000
_LINES = 4


@attrs.frozen(kw_only=True)
class Bar:
    """One bar, in units of 10⁻⁶."""

    # Unix seconds.
    at: float
    # By key, without refunds.
    kept: Mapping[str, int]
    back: int

    @property
    def total(self) -> int:
        """The height of the bar."""
        return sum(self.kept.values()) + self.back


@attrs.frozen(kw_only=True)
class Chart:
    """Income over time, by endpoint."""

    keys: Sequence[str]
    bars: Sequence[Bar]
    # Of one bar, in seconds.
    step_s: float

    def label(self, at: float) -> str:
        """Return the time of a bar for the table."""
        if self._is_of_one_day or self.step_s >= _DAY_S:
            return self.short_label(at)
        return datetime.fromtimestamp(at, UTC).strftime("%d %b %H:%M")

    def short_label(self, at: float) -> str:
        """Return the time of a bar for the axis."""
        form = "%H:%M" if self._is_of_one_day else "%d %b"
        return datetime.fromtimestamp(at, UTC).strftime(form)

    @property
    def _is_of_one_day(self) -> bool:
        return self.step_s * len(self.bars) <= _DAY_S


def make_chart(period: Period, sold: Sequence[SalesBar]) -> Chart:
    """Return the chart of a period, with small endpoints merged as others."""
    taken: dict[str, int] = {}
    for one in sold:
        taken[one.slug] = taken.get(one.slug, 0) + one.taken_units
    ranked = sorted(taken, key=lambda slug: (-taken[slug], slug))
    named = sorted(ranked if len(ranked) <= _MAX_KEYS else ranked[: _MAX_KEYS - 1])
    kept: list[dict[str, int]] = [{} for _ in range(period.bars)]
    back = [0] * period.bars
    for one in sold:
        key = one.slug if one.slug in named else OTHERS
        units = one.taken_units - one.back_units
        kept[one.bar][key] = kept[one.bar].get(key, 0) + units
        back[one.bar] += one.back_units
    return Chart(
        keys=named if len(named) == len(ranked) else [*named, OTHERS],
        bars=[
            Bar(at=period.start_of(bar), kept=kept[bar], back=back[bar])
            for bar in range(period.bars)
        ],
        step_s=period.step_s,
    )


def merge(chart: Chart, count: int) -> Chart:
    """Merge each `count` bars into one; a phone has room for half of them."""
    merged = []
    for start in range(0, len(chart.bars), count):
        part = chart.bars[start : start + count]
        kept = {key: sum(bar.kept.get(key, 0) for bar in part) for key in chart.keys}
        merged.append(Bar(at=part[0].at, kept=kept, back=sum(bar.back for bar in part)))
    return attrs.evolve(chart, bars=merged, step_s=chart.step_s * count)


def draw(chart: Chart, *, name: str, width: int, height: int) -> Markup:
    """Return the chart as SVG; `name` makes its hatching's id unique."""
    step, top = _scale(max((bar.total for bar in chart.bars), default=0))
    plot = _Plot(width=width, height=height, top=top, count=len(chart.bars))
    lines = [plot.draw_line(value) for value in range(0, top + 1, step)]
    bars = [plot.draw_bar(chart, place) for place in range(len(chart.bars))]
    every = max(1, -(-len(chart.bars) // (6 if width > 500 else 4)))  # noqa: PLR2004 - a phone
    labels = [plot.draw_label(chart, place) for place in range(0, len(chart.bars), every)]
    hatch = (
        f'<defs><pattern id="hatch-{name}" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="5" height="5" class="hatch-back"/>'
        '<line x1="0" y1="0" x2="0" y2="5" class="hatch-line"/></pattern></defs>'
    )
    inside = "".join([hatch, *lines, *bars, *labels])
    return Markup(  # noqa: S704 - every text in it was escaped
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="USDC taken over time; the table below has the numbers">{inside}</svg>'
    )


def _scale(highest: int) -> tuple[int, int]:
    """Return the distance of lines and the end of the scale."""
    highest = max(highest, _MIN_UNITS)
    steps = (factor * 10**power for power in range(3, 16) for factor in (1, 2, 5))
    step = next(step for step in steps if highest <= step * _LINES)
    return step, -(-highest // step) * step


@attrs.frozen(kw_only=True)
class _Plot:
    """The measures of one drawing, in SVG pixels."""

    width: int
    height: int
    # The end of the scale, in units.
    top: int
    count: int

    @property
    def base(self) -> float:
        return self.height - _BOTTOM

    @property
    def slot(self) -> float:
        return (self.width - _LEFT - _RIGHT) / max(1, self.count)

    def high(self, units: int) -> float:
        return (self.base - _TOP) * units / self.top

    def left_of(self, place: int) -> float:
        return _LEFT + self.slot * (place + _GAP)

    def draw_line(self, units: int) -> str:
        y = self.base - self.high(units)
        return (
            f'<line class="grid" x1="{_LEFT:g}" x2="{self.width - _RIGHT:g}" y1="{y:.1f}" '
            f'y2="{y:.1f}"/><text x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">'
            f"{units / 10**6:g}</text>"
        )

    def draw_bar(self, chart: Chart, place: int) -> str:
        bar = chart.bars[place]
        if not bar.total:
            return ""
        parts = [(f"s{n}", key, bar.kept.get(key, 0)) for n, key in enumerate(chart.keys)]
        parts.append(("back", "owed or given back", bar.back))
        shown = [part for part in parts if part[2]]
        details = "&#10;".join(f"{escape(key)} {usdc(units)}" for _, key, units in shown)
        y, drawn = self.base, []
        for kind, _, units in shown:
            high = self.high(units)
            y -= high
            drawn.append(
                f'<rect class="{kind}" x="{self.left_of(place):.1f}" y="{y:.1f}" '
                f'width="{self.slot * (1 - 2 * _GAP):.1f}" height="{max(high - 0.8, 0.8):.1f}" '
                'rx="1.5"/>'
            )
        title = f"{chart.label(bar.at)}: {usdc(bar.total)} USDC&#10;{details}"
        return f"<g><title>{title}</title>{''.join(drawn)}</g>"

    def draw_label(self, chart: Chart, place: int) -> str:
        x = self.left_of(place) + self.slot * (0.5 - _GAP)
        label = escape(chart.short_label(chart.bars[place].at))
        anchor = "middle"
        return f'<text x="{x:.1f}" y="{self.height - 4}" text-anchor="{anchor}">{label}</text>'
