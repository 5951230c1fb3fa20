"""The blocks of a page in reading order, and their Markdown."""

from collections.abc import Sequence

import liteparse
from liteparse import LayoutBlock, LayoutCell

from gateway_documents.child import tables
from gateway_documents.child.lines import Box

RULED = "ruled"
"""The `id` of a table whose cells were found by drawn lines or by the places of words."""


def to_markdown(blocks: Sequence[LayoutBlock]) -> str:
    """Return the Markdown of a page; list items that follow each other are one paragraph."""
    parts: list[str] = []
    above = ""
    for block in blocks:
        text = _one(block)
        if text.strip("-\n "):
            parts.append("\n" if block.kind == above == "list_item" else "\n\n")
            parts.append(text)
            above = block.kind
    return "".join(parts[1:])


def cells(block: LayoutBlock) -> list[list[LayoutCell]]:
    """Return all rows of a table, with its head."""
    return [*([block.header] if block.header else []), *(block.rows or ())]


def _one(block: LayoutBlock) -> str:
    text = block.text or ""
    match block.kind:
        case "heading":
            return f"{'#' * (block.level or 1)} {text}"
        case "list_item":
            marker = (block.marker if block.ordered else None) or "-"
            return f"{'  ' * (block.level or 0)}{marker} {text}"
        case "table":
            return tables.to_markdown([[cell.text for cell in row] for row in cells(block)])
        case "code" | "grid_fallback":
            return "\n".join([f"```{block.lang or ''}", *(block.lines or ()), "```"])
        case "rule" | "figure":
            return ""
    mark = ("**" if block.bold else "") + ("*" if block.italic else "")
    return f"{mark}{text}{mark[::-1]}" if text else ""


def box_of(block: LayoutBlock) -> Box:
    """Return the rectangle of a block; its text is left out."""
    box = block.bbox or liteparse.AnnotationRect(0, 0, 0, 0)
    return Box(box.x, box.x + box.width, box.y, box.y + box.height, "")


def rectangle(boxes: Sequence[Box]) -> liteparse.AnnotationRect:
    """Return the rectangle around boxes."""
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    right, bottom = max(box.right for box in boxes), max(box.bottom for box in boxes)
    return liteparse.AnnotationRect(left, top, right - left, bottom - top)
