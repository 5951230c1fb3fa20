"""Rewrites charts that anydoc drops or garbles as charts that it reads."""

from collections.abc import Iterator
from typing import Any

from lxml import etree

# lxml has no public name for it.
Element = Any
# Of scatter and bubble charts.
_AXES = {"xVal": "cat", "yVal": "val"}


def rewrite(root: Element) -> None:
    """Give scatter charts categories and values, and categories one level."""
    for old, new in _AXES.items():
        for element in root.iter(f"{{*}}{old}"):
            element.tag = f"{{{etree.QName(element).namespace}}}{new}"
    for levels in list(root.iter("{*}multiLvlStrRef")):
        _flatten(levels)


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
        if value is not None and (index := point.get("idx", "")).isdigit():
            yield int(index), value.text or ""
