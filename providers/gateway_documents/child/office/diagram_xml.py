"""Puts the texts of SmartArt in the order of its tree, each in one paragraph."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

# lxml has no public name for it.
Element = Any
_ORDER = re.compile("[0-9]{1,9}")


def rewrite(root: Element) -> None:
    """Order the points of a diagram's data as its connections do, and join their paragraphs."""
    points = root.find("{*}ptLst")
    if points is None:
        return
    by_id = {point.get("modelId", ""): point for point in points}
    for name in _in_order(root, by_id):
        points.append(by_id[name])
    for text in root.iter("{*}t"):
        _join(text)


def _in_order(root: Element, by_id: dict[str, Element]) -> Iterator[str]:
    """Yield the points from the root of the tree on, and then those without a connection."""
    children: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for link in root.iter("{*}cxn"):
        order = link.get("srcOrd", "")
        if link.get("type", "parOf") == "parOf" and _ORDER.fullmatch(order):
            children[link.get("srcId", "")].append((int(order), link.get("destId", "")))
    inner = {child for found in children.values() for _, child in found}
    left = [name for name in reversed(list(by_id)) if name not in inner]
    seen: set[str] = set()
    while left:
        name = left.pop()
        if name in by_id and name not in seen:
            seen.add(name)
            yield name
            left += [child for _, child in sorted(children[name], reverse=True)]


def _join(text: Element) -> None:
    paragraphs = text.findall("{*}p")
    for paragraph in paragraphs:
        for line_break in paragraph.findall("{*}br"):
            line_break.tag = line_break.tag.replace("}br", "}r")
            _add_text(line_break, " ")
    for paragraph in paragraphs[1:]:
        first = paragraphs[0]
        if (run := paragraph.find("{*}r")) is not None and len(first):
            piece = run.find("{*}t")
            if piece is not None:
                piece.text = f" {piece.text or ''}"
        first.extend(paragraph)
        text.remove(paragraph)


def _add_text(run: Element, text: str) -> None:
    for child in list(run):
        run.remove(child)
    piece = run.makeelement(run.tag.replace("}r", "}t"))
    piece.text = text
    run.append(piece)
