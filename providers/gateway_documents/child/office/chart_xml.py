"""Rewrites charts that anydoc drops or garbles as charts that it reads."""

import datetime as dt
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from lxml import etree

from gateway_documents.child.sheets.number_formats import formatter, general, is_date
from gateway_documents.errors import Unreadable

# lxml has no public name for it.
Element = Any
# Of scatter and bubble charts.
_AXES = {"xVal": "cat", "yVal": "val"}
# Days count from here in Excel, since March 1900.
_FIRST_DAY = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - a day without a place
_LAST_DAY = 2_958_466
# Added to a chart; more take over two seconds.
_MAX_ADDED_POINTS = 300_000
_INDEX = re.compile("[0-9]{1,9}")


def rewrite(root: Element) -> None:
    """Give scatter charts categories and values, and categories one level and a name each."""
    for old, new in _AXES.items():
        for element in root.iter(f"{{*}}{old}"):
            element.tag = f"{{{etree.QName(element).namespace}}}{new}"
    _turn_x_axes(root)
    for levels in list(root.iter("{*}multiLvlStrRef")):
        _flatten(levels)
    _complete(list(root.iter("{*}ser")))
    for cache in root.iter("{*}numCache", "{*}numLit"):
        _format(cache)
    _name_values(root)


def _turn_x_axes(root: Element) -> None:
    """Make the x axes of scatter and bubble charts axes of categories."""
    groups = root.iter("{*}scatterChart", "{*}bubbleChart")
    of_pairs = {name for group in groups for name in _axes_of(group)}
    for axis in list(root.iter("{*}valAx")):
        place = axis.find("{*}axPos")
        is_across = place is not None and place.get("val") in ("b", "t")
        if is_across and not of_pairs.isdisjoint(_axes_of(axis)):
            axis.tag = f"{{{etree.QName(axis).namespace}}}catAx"


def _complete(all_series: Sequence[Element]) -> None:
    """Give each series as many points as the longest one has, and the chart categories.

    Raises `Unreadable` for a chart that would become too large.
    """
    count = max((at for series in all_series for at, _ in _points(series)), default=-1) + 1
    caches = {
        point.getparent()
        for series in all_series
        for place in ("cat", "val")
        for point in series.iterfind(f"{{*}}{place}//{{*}}pt")
    }
    found = sum(len(cache.findall("{*}pt")) for cache in caches)
    if count * (len(caches) + 1) - found > _MAX_ADDED_POINTS:
        raise Unreadable(f"The file is too large: a chart of {count:,} points with gaps.")
    for cache in caches:
        _fill_gaps(cache, count)
    # anydoc prints the first categories that it finds.
    if all(series.find("{*}cat") is None for series in all_series):
        _number_categories(all_series, count)


def _number_categories(all_series: Sequence[Element], count: int) -> None:
    """Name the categories of a chart without names as Excel does: 1, 2, 3."""
    series = next((one for one in all_series if one.find("{*}val") is not None), None)
    if series is None:
        return
    names = f"{{{etree.QName(series).namespace}}}"
    categories = series.makeelement(f"{names}cat")
    series.find("{*}val").addprevious(categories)
    cache = etree.SubElement(etree.SubElement(categories, f"{names}strRef"), f"{names}strCache")
    for at in range(count):
        point = etree.SubElement(cache, f"{names}pt", idx=str(at))
        etree.SubElement(point, f"{names}v").text = str(at + 1)


def _fill_gaps(cache: Element, count: int) -> None:
    """Add the points without a value, because anydoc counts points instead of their numbers."""
    points = cache.findall("{*}pt")
    found = {_index_of(point): point for point in points}
    for point in points:
        cache.remove(point)
    names = f"{{{etree.QName(cache).namespace}}}"
    for at in range(count):
        point = found.get(at)
        if point is None:
            point = etree.Element(f"{names}pt", idx=str(at))
            etree.SubElement(point, f"{names}v").text = ""
        cache.append(point)


def _format(cache: Element) -> None:
    """Show dates, percentages and other numbers in their format."""
    code = cache.findtext("{*}formatCode") or "General"
    for value in cache.iter("{*}v"):
        try:
            number = float(value.text or "")
        except ValueError:
            continue  # an error such as #N/A
        if math.isfinite(number) and code != "General":
            value.text = _day(number) if is_date(code) else formatter(code)(number)


def _day(number: float) -> str:
    if not 0 <= number < _LAST_DAY:
        return general(number)
    moment = _FIRST_DAY + dt.timedelta(days=number)
    is_day = moment.time() == dt.time()
    return moment.date().isoformat() if is_day else moment.isoformat(" ", "seconds")


def _name_values(root: Element) -> None:
    """Add the title of their axis to the names of the series, which anydoc prints."""
    chart = root.find("{*}chart")
    if chart is None:
        return
    if chart.find("{*}title") is None:
        # anydoc would take the title of an axis for that of the chart.
        chart.insert(0, etree.Element(f"{{{etree.QName(chart).namespace}}}title"))
    titles = {
        name: _text_of(title)
        for axis in chart.iterfind("{*}plotArea/{*}valAx")
        for title in axis.iterfind("{*}title")
        for name in _axes_of(axis)
    }
    for group in chart.iterfind("{*}plotArea/*"):
        title = next((text for name in _axes_of(group) if (text := titles.get(name))), "")
        for name in group.iterfind("{*}ser/{*}tx//{*}v") if title else ():
            name.text = f"{name.text} ({title})" if name.text else title


def _axes_of(parent: Element) -> list[str]:
    return [axis.get("val", "") for axis in parent.iterfind("{*}axId")]


def _text_of(title: Element) -> str:
    """Return the paragraphs of a title, or the text of the cell that it is linked to."""
    parts = (
        "".join(text.text or "" for text in part.iter("{*}t", "{*}v"))
        for part in title.iter("{*}p", "{*}v")
    )
    return " ".join(part.strip() for part in parts).strip()


def _flatten(reference: Element) -> None:
    names = f"{{{etree.QName(reference).namespace}}}"
    levels = [sorted(dict(_points(level)).items()) for level in reference.iter(f"{names}lvl")]
    labels, *outer_levels = levels or [[]]
    if len(labels) * len(outer_levels) > _MAX_ADDED_POINTS:
        raise Unreadable(f"The file is too large: a chart with {len(levels):,} levels of labels.")
    flat = etree.Element(f"{names}strRef")
    cache = etree.SubElement(flat, f"{names}strCache")
    for at, label in labels:
        outer = (_label_above(level, at) for level in reversed(outer_levels))
        point = etree.SubElement(cache, f"{names}pt", idx=str(at))
        etree.SubElement(point, f"{names}v").text = " ".join(filter(None, (*outer, label)))
    reference.getparent().replace(reference, flat)


def _label_above(level: Sequence[tuple[int, str]], at: int) -> str:
    """Return the label of an outer level, which names the first of its categories only."""
    place = bisect_right(level, at, key=itemgetter(0))
    return level[place - 1][1] if place else ""


def _points(level: Element) -> Iterator[tuple[int, str]]:
    for point in level.iter("{*}pt"):
        value, index = point.find("{*}v"), _index_of(point)
        if value is not None and index is not None:
            yield index, value.text or ""


def _index_of(point: Element) -> int | None:
    index = point.get("idx", "")
    return int(index) if _INDEX.fullmatch(index) else None
