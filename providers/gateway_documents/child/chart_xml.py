"""Rewrites charts that anydoc drops or garbles as charts that it reads."""

import datetime as dt
import math
from collections.abc import Iterator
from typing import Any

from lxml import etree

from gateway_documents.child.number_formats import formatter, general, is_date

# lxml has no public name for it.
Element = Any
# Of scatter and bubble charts.
_AXES = {"xVal": "cat", "yVal": "val"}
# Days count from here in Excel, since March 1900.
_FIRST_DAY = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - a day without a place
_MAX_POINTS = 100_000
_LAST_DAY = 2_958_466


def rewrite(root: Element) -> None:
    """Give scatter charts categories and values, and categories one level and a name each."""
    for old, new in _AXES.items():
        for element in root.iter(f"{{*}}{old}"):
            element.tag = f"{{{etree.QName(element).namespace}}}{new}"
    for levels in list(root.iter("{*}multiLvlStrRef")):
        _flatten(levels)
    values = (at for series in root.iter("{*}ser") for at, _ in _points(series))
    count = max(values, default=-1) + 1
    for series in root.iter("{*}ser"):
        _number_categories(series, min(count, _MAX_POINTS))
        for place in ("cat", "val"):
            for cache in {point.getparent() for point in series.iterfind(f"{{*}}{place}//{{*}}pt")}:
                _fill_gaps(cache, min(count, _MAX_POINTS))
    for cache in root.iter("{*}numCache", "{*}numLit"):
        _format(cache)
    _name_values(root)


def _number_categories(series: Element, count: int) -> None:
    """Name the categories of a series without names as Excel does: 1, 2, 3."""
    values = series.find("{*}val")
    if values is None or series.find("{*}cat") is not None:
        return
    names = f"{{{etree.QName(series).namespace}}}"
    categories = series.makeelement(f"{names}cat")
    values.addprevious(categories)
    cache = etree.SubElement(etree.SubElement(categories, f"{names}strRef"), f"{names}strCache")
    for at in range(count):
        point = etree.SubElement(cache, f"{names}pt", idx=str(at))
        etree.SubElement(point, f"{names}v").text = str(at + 1)


def _fill_gaps(cache: Element, count: int) -> None:
    """Add the points without a value, because anydoc counts points instead of their numbers."""
    found = {point.get("idx", ""): point for point in cache.findall("{*}pt")}
    names = f"{{{etree.QName(cache).namespace}}}"
    for at in range(count):
        point = found.get(str(at))
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
    """Add the title of the axis of values to the names of the series, which anydoc prints."""
    chart = root.find("{*}chart")
    if chart is None:
        return
    titles = [axis.find("{*}title") for axis in root.iter("{*}valAx")]
    texts = ["".join(title.itertext()).strip() for title in titles if title is not None]
    if chart.find("{*}title") is None:
        # anydoc would take the title of an axis for that of the chart.
        chart.insert(0, etree.Element(f"{{{etree.QName(chart).namespace}}}title"))
    if len(texts) == 1:
        for name in root.iterfind(".//{*}ser/{*}tx//{*}v"):
            name.text = f"{name.text} ({texts[0]})"


def _flatten(reference: Element) -> None:
    names = f"{{{etree.QName(reference).namespace}}}"
    levels = [dict(_points(level)) for level in reference.iter(f"{names}lvl")]
    flat = etree.Element(f"{names}strRef")
    cache = etree.SubElement(flat, f"{names}strCache")
    for at in sorted(levels[0]) if levels else ():
        # The outer levels name the first of their categories only.
        outer = (
            next((text for first, text in sorted(level.items(), reverse=True) if first <= at), "")
            for level in reversed(levels[1:])
        )
        point = etree.SubElement(cache, f"{names}pt", idx=str(at))
        label = " ".join(filter(None, (*outer, levels[0][at])))
        etree.SubElement(point, f"{names}v").text = label
    reference.getparent().replace(reference, flat)


def _points(level: Element) -> Iterator[tuple[int, str]]:
    for point in level.iter("{*}pt"):
        value = point.find("{*}v")
        if value is not None and (index := point.get("idx", "")).isdecimal():
            yield int(index), value.text or ""
