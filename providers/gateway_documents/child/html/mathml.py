"""Writes the formulas of HTML pages in one line."""

from bs4.element import Tag

from gateway_documents.child import escaping

_TEX = "application/x-tex"
# Rows of a matrix, and the cells of each.
_PARTED = {"mtable": "; ", "mtr": ", "}
_JOINED = {
    "msup": ("^",),
    "mroot": ("^1/",),
    "msub": ("_",),
    "mover": ("^",),
    "munder": ("_",),
    "mfrac": ("/",),
    "msubsup": ("_", "^"),
    "munderover": ("_", "^"),
}


def to_markdown(formula: Tag) -> str:
    """Return a formula as TeX if the page has that, and else in signs such as (a+b)/2."""
    annotation = formula.find("annotation", encoding=_TEX)
    tex = annotation.get_text().strip() if annotation else str(formula.get("alttext") or "").strip()
    return f"${tex}$" if tex and "\n" not in tex else escaping.inline(_line(formula))


def _line(tag: Tag) -> str:
    parts = [
        _line(child) if isinstance(child, Tag) else str(child).strip()
        for child in tag.children
        if not isinstance(child, Tag) or not child.name.startswith("annotation")
    ]
    parts = [part for part in parts if part]
    signs = _JOINED.get(tag.name, ())
    if signs and len(parts) == len(signs) + 1:
        first, *rest = (_grouped(part) for part in parts)
        return first + "".join(sign + part for sign, part in zip(signs, rest, strict=True))
    line = _PARTED.get(tag.name, "").join(parts)
    return f"\u221a({line})" if tag.name == "msqrt" else line


def _grouped(part: str) -> str:
    return part if len(part) == 1 or part.isalnum() else f"({part})"
