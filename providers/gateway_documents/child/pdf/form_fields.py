"""The filled-in fields of a PDF's form: their names, and values that the page does not draw."""

from collections.abc import Iterator, Sequence

import liteparse

from gateway_documents.child import escaping

# Longer names, and those with brackets, are a program's.
_MAX_NAME = 40
_OF_WORDS = ("text", "combobox", "listbox")
# PDF 32000-1, table 228.
_PASSWORD = 1 << 13


def named(markdown: str, fields: Sequence[liteparse.FormField]) -> str:
    """Return a page whose lines of only a field's value begin with the field's name.

    A program may leave it to readers to draw the values; those are added at the end.
    """
    lines = markdown.split("\n")
    for field in fields:
        if field.value in lines and _name(field):
            lines[lines.index(field.value)] = f"{_name(field)}: {field.value}"
    return "\n\n".join(filter(None, ("\n".join(lines), *_undrawn(markdown, fields))))


def _undrawn(markdown: str, fields: Sequence[liteparse.FormField]) -> Iterator[str]:
    drawn = _letters(markdown)
    for field in fields:
        is_shown = field.type in _OF_WORDS and not field.field_flags & _PASSWORD
        value = " ".join((field.value or "").split())
        if is_shown and _has_size(field) and value and _letters(value) not in drawn:
            name = f"{_name(field)}: " if _name(field) else ""
            yield name + escaping.paragraph(value)


def _name(field: liteparse.FormField) -> str:
    name = field.alternate_name or field.name or ""
    return name if len(name) <= _MAX_NAME and "[" not in name else ""


def _has_size(field: liteparse.FormField) -> bool:
    return field.rect is not None and field.rect.width > 1 and field.rect.height > 1


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
