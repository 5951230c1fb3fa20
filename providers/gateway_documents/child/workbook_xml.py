"""The facts about a workbook that calamine does not report, from its XML parts.

calamine gives the values. Number formats, hidden rows and columns, and formulas without a saved
value are read here, by patterns that match Excel's own way to write them and that of other
programs. A part that they do not match costs the format of a number, never its value.
"""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping

import attrs

from gateway_documents.child import zip_parts
from gateway_documents.child.number_formats import BUILT_IN

_RELATIONS = "xl/_rels/workbook.xml.rels"
# No pattern goes beyond the next "<" of its kind, or it would take quadratic time.
_SHEET = re.compile(rb"<(?:\w+:)?sheet\b[^<>]*>")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\b[^<>]*>")
_FORMAT = re.compile(rb"<(?:\w+:)?numFmt\b[^<>]*>")
_CELL_STYLES = re.compile(
    rb"<(?:\w+:)?cellXfs\b(?:(?!<(?:\w+:)?cellXfs\b).)*?</(?:\w+:)?cellXfs>", re.DOTALL
)
_STYLE = re.compile(rb"<(?:\w+:)?xf\b[^<>]*>")
_ROW = re.compile(rb"<(?:\w+:)?row\b([^<>]*)>")
_COLUMN = re.compile(rb"<(?:\w+:)?col\b([^<>]*)>")
_CELL = re.compile(rb"<(?:\w+:)?c\b([^<>]*[^<>/])>((?:(?!</?(?:\w+:)?c\b).)*)</", re.DOTALL)
_FORMULA = re.compile(rb"<(?:\w+:)?f\b[^<>]*[^<>/]?>([^<]+)</")
_ERROR = re.compile(rb"<(?:\w+:)?v\b[^<>]*>([^<]+)</")
_VALUE = re.compile(rb"<(?:\w+:)?(?:v|t)\b[^<>]*>[^<]")
_ATTRIBUTE = re.compile(rb"""([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_PLACE = re.compile(rb"([A-Z]{1,3})(\d{1,7})\Z")
_REFERENCE = re.compile(rb'(<(?:\w+:)?c\b[^<>]*?\br=")([A-Z]{1,3})(\d{1,7})"')
_ROW_NUMBER = re.compile(rb'(<(?:\w+:)?row\b[^<>]*?\br=")(\d{1,7})"')
_EXTENT = re.compile(rb"<(?:\w+:)?(?:dimension|mergeCell)\b[^<>]*>")
# White space that is no text of a cell.
_INDENT = re.compile(rb"(</?(?:table|office):[^<>]*>|</text:p>)\s+(?=<)")
_ENTITIES = {"&quot;": '"', "&apos;": "'", "&lt;": "<", "&gt;": ">", "&amp;": "&"}
_ENTITY = re.compile("|".join(_ENTITIES))


@attrs.frozen
class SheetFacts:
    """About one sheet; rows and columns count from 0."""

    formats: Mapping[tuple[int, int], str] = attrs.field(factory=dict)
    """The number format of cells that have another one than General."""
    hidden_rows: frozenset[int] = frozenset()
    hidden_columns: frozenset[int] = frozenset()
    formulas: Mapping[tuple[int, int], str] = attrs.field(factory=dict)
    """Formulas whose value the program did not save."""
    errors: Mapping[tuple[int, int], str] = attrs.field(factory=dict)
    """Values such as `#N/A`, which calamine leaves empty."""


def read(data: bytes) -> dict[str, SheetFacts]:
    """Return the facts about each worksheet of a .xlsx, by the sheet's name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        styles = _style_formats(archive.read("xl/styles.xml")) if "xl/styles.xml" in names else []
        return {
            sheet: _facts(archive.read(part), styles)
            for sheet, part in _sheet_parts(archive)
            if part in names
        }


def compacted(data: bytes, max_cells: int) -> bytes:
    """Return a .xlsx whose sheets have no empty rows and columns, if a sheet is mostly empty.

    calamine holds the whole rectangle of a sheet, which a single cell far away makes huge.
    """
    changed = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        for _, part in _sheet_parts(archive):
            sheet = archive.read(part) if part in names else b""
            places = set(_REFERENCE.findall(sheet))
            columns = sorted({_column(letters) for _, letters, _ in places})
            rows = sorted({int(number) for _, _, number in places})
            if places and (columns[-1] + 1) * rows[-1] > max_cells:
                changed[part] = _moved_together(sheet, columns, rows)
        return zip_parts.with_parts(archive, changed) if changed else data


def unindented(data: bytes) -> bytes:
    """Return an .ods without the white space between rows and cells, which calamine refuses."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        name = "content.xml"
        content = archive.read(name) if name in archive.namelist() else b""
        if not _INDENT.search(content):
            return data
        return zip_parts.with_parts(archive, {name: _INDENT.sub(rb"\1", content)})


def _moved_together(sheet: bytes, columns: list[int], rows: list[int]) -> bytes:
    new_column = {old: _letters(new) for new, old in enumerate(columns)}
    new_row = {old: b"%d" % new for new, old in enumerate(rows, 1)}

    def cell(found: re.Match[bytes]) -> bytes:
        return found[1] + new_column[_column(found[2])] + new_row[int(found[3])] + b'"'

    def row(found: re.Match[bytes]) -> bytes:
        return found[1] + new_row.get(int(found[2]), b"0") + b'"'

    sheet = _EXTENT.sub(b"", _REFERENCE.sub(cell, sheet))
    return _ROW_NUMBER.sub(row, sheet)


def _letters(column: int) -> bytes:
    letters = b""
    while column >= 0:
        letters = bytes([65 + column % 26]) + letters
        column = column // 26 - 1
    return letters


def _sheet_parts(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Yield the name of each sheet and the path of its part."""
    relations = {
        relation[b"Id"]: relation[b"Target"]
        for relation in map(_attributes, _RELATION.findall(_part(archive, _RELATIONS)))
        if b"Id" in relation and b"Target" in relation
    }
    for sheet in map(_attributes, _SHEET.findall(_part(archive, "xl/workbook.xml"))):
        link = next((value for key, value in sheet.items() if key.endswith(b":id")), b"")
        path = posixpath.normpath(posixpath.join("/xl", relations.get(link, b"").decode()))
        yield _text(sheet.get(b"name", b"")), path.lstrip("/")


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    return archive.read(name) if name in archive.namelist() else b""


def _style_formats(styles: bytes) -> list[str]:
    """Return the number format of each cell style; empty for General and for dates."""
    codes = dict(BUILT_IN)
    for found in map(_attributes, _FORMAT.findall(styles)):
        if b"numFmtId" in found and b"formatCode" in found:
            codes[int(found[b"numFmtId"])] = _text(found[b"formatCode"])
    block = _CELL_STYLES.search(styles)
    styles_of_cells = _STYLE.findall(block[0]) if block else ()
    return [
        codes.get(int(_attributes(style).get(b"numFmtId", b"0")), "") for style in styles_of_cells
    ]


def _facts(sheet: bytes, styles: list[str]) -> SheetFacts:
    formats: dict[tuple[int, int], str] = {}
    formulas: dict[tuple[int, int], str] = {}
    errors: dict[tuple[int, int], str] = {}
    for head, body in _CELL.findall(sheet):
        found = _attributes(head)
        place = _PLACE.match(found.get(b"r", b""))
        if place is None:
            continue
        at = int(place[2]) - 1, _column(place[1])
        style = int(found.get(b"s") or b"0")
        if style < len(styles) and styles[style] and found.get(b"t", b"n") == b"n":
            formats[at] = styles[style]
        if found.get(b"t") == b"e" and (error := _ERROR.search(body)):
            errors[at] = _text(error[1])
        elif (formula := _FORMULA.search(body)) and not _VALUE.search(body):
            formulas[at] = f"={_text(formula[1])}"
    rows = (_attributes(row) for row in _ROW.findall(sheet))
    hidden = {int(row[b"r"]) - 1 for row in rows if _is_on(row, b"hidden") and b"r" in row}
    columns = frozenset(_hidden_columns(sheet))
    return SheetFacts(formats, frozenset(hidden), columns, formulas, errors)


def _hidden_columns(sheet: bytes) -> Iterator[int]:
    for column in map(_attributes, _COLUMN.findall(sheet[: sheet.find(b"sheetData")])):
        if _is_on(column, b"hidden") and {b"min", b"max"} <= set(column):
            yield from range(int(column[b"min"]) - 1, min(int(column[b"max"]), 16_384))


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number - 1


def _attributes(tag: bytes) -> dict[bytes, bytes]:
    return {name: double or single for name, double, single in _ATTRIBUTE.findall(tag)}


def _is_on(attributes: Mapping[bytes, bytes], name: bytes) -> bool:
    return attributes.get(name) in (b"1", b"true")


def _text(value: bytes) -> str:
    return _ENTITY.sub(lambda found: _ENTITIES[found[0]], value.decode(errors="replace"))
