"""The facts about a workbook that calamine does not report, from its XML parts.

calamine gives the values. Number formats, hidden rows and columns, and formulas without a saved
value are read here, by patterns that match Excel's own way to write them and that of other
programs. A part that they do not match costs the format of a number, never its value.
"""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence

import attrs
from lxml import etree

from gateway_documents.child.office import zip_parts
from gateway_documents.child.sheets.number_formats import BUILT_IN, text_formatter

_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_STRICT = "http://purl.oclc.org/ooxml/drawingml/main"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# Types of cells that hold a text.
_TEXTS = (b"s", b"str", b"inlineStr")
_RELATIONS = "xl/_rels/workbook.xml.rels"
# No pattern goes beyond the next "<" of its kind, or it would take quadratic time.
_SHEET = re.compile(rb"<(?:\w+:)?sheet\b[^<>]*>")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\b[^<>]*>")
_FORMAT = re.compile(rb"<(?:\w+:)?numFmt\b[^<>]*>")
_CELL_STYLES = re.compile(
    rb"<(?:\w+:)?cellXfs\b(?:(?!<(?:\w+:)?cellXfs\b).)*?</(?:\w+:)?cellXfs>", re.DOTALL
)
_STYLE = re.compile(rb"<(?:\w+:)?xf\b[^<>]*>")
_COLUMN = re.compile(rb"<(?:\w+:)?col\b([^<>]*)>")
# The tag of a row or a cell, and what follows up to the next one.
_PIECE = re.compile(rb"<(?:\w+:)?(row|c)\b([^<>]*)>((?:(?!</?(?:\w+:)?(?:c|row)\b).)*)", re.DOTALL)
_FORMULA = re.compile(rb"<(?:\w+:)?f\b([^<>]*)>([^<]*)")
_ERROR = re.compile(rb"<(?:\w+:)?v\b[^<>]*>([^<]+)</")
_VALUE = re.compile(rb"<(?:\w+:)?(?:v|t)\b[^<>]*>[^<]")
_EMPTY_VALUE = re.compile(rb"<(?:\w+:)?v\b")
_ATTRIBUTE = re.compile(rb"""([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_PLACE = re.compile(rb"([A-Z]{1,3})(\d{1,7})\Z")
_REFERENCE = re.compile(rb'(<(?:\w+:)?c\b[^<>]*?\br=")([A-Z]{1,3})(\d{1,7})"')
_ROW_NUMBER = re.compile(rb'(<(?:\w+:)?row\b[^<>]*?\br=")(\d{1,7})"')
_EXTENT = re.compile(rb"<(?:\w+:)?(?:dimension|mergeCell)\b[^<>]*>")
# White space that is no text of a cell.
_INDENT = re.compile(rb"(</?(?:table|office):[^<>]*>|</text:p>)\s+(?=<)")
# A reference in a formula, outside quotes.
_CELL_NAME = re.compile(r'"[^"]*"|(?<![\w.])(\$?)([A-Z]{1,3})(\$?)(\d{1,7})(?![\w(])')
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
    texts: Sequence[str] = ()
    """Paragraphs of text boxes, and titles of charts."""


def read(data: bytes) -> dict[str, SheetFacts]:
    """Return the facts about each worksheet of a .xlsx, by the sheet's name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        styles = _style_formats(archive.read("xl/styles.xml")) if "xl/styles.xml" in names else []
        return {
            sheet: _facts(archive.read(part), styles, _texts_of(archive, part))
            for sheet, part in _sheet_parts(archive)
            if part in names
        }


def has_comments(data: bytes) -> bool:
    """Whether a .xlsx has comments."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = [name for name in archive.namelist() if "omments" in name and name.endswith(".xml")]
        return any(b"</" in archive.read(name) for name in parts)


def is_utf_16(data: bytes) -> bool:
    """Whether a part is in UTF-16, which calamine reads as no text."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return any(
            archive.open(name).read(2) in _UTF_16
            for name in archive.namelist()
            if name.lower().endswith(".xml")
        )


def repaired(data: bytes) -> bytes:
    """Return a .xlsx whose parts are XML in UTF-8, without those that are no XML."""
    changed: dict[str, bytes | None] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.lower().endswith((".xml", ".rels")):
                part = archive.read(name)
                root, is_whole = zip_parts.parsed(part)
                if root is None or (not is_whole and not len(root)):
                    changed[name] = None
                elif not is_whole or part.startswith(_UTF_16) or zip_parts.cleaned(part) != part:
                    changed[name] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
        return zip_parts.with_parts(archive, changed) if changed else data


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


def _facts(sheet: bytes, styles: list[str], texts: Sequence[str] = ()) -> SheetFacts:
    reader = _Reader(styles)
    for kind, head, body in _PIECE.findall(sheet):
        if kind == b"row":
            reader.start_row(_attributes(head))
        else:
            reader.read_cell(_attributes(head), b"" if head.endswith(b"/") else body)
    columns = frozenset(_hidden_columns(sheet))
    return SheetFacts(
        reader.formats, frozenset(reader.hidden), columns, reader.formulas, reader.errors, texts
    )


@attrs.define
class _Reader:
    """Reads the rows and cells of a sheet in their order; some programs do not number them."""

    styles: list[str]
    formats: dict[tuple[int, int], str] = attrs.field(factory=dict, init=False)
    formulas: dict[tuple[int, int], str] = attrs.field(factory=dict, init=False)
    errors: dict[tuple[int, int], str] = attrs.field(factory=dict, init=False)
    hidden: set[int] = attrs.field(factory=set, init=False)
    _shared: dict[bytes, tuple[int, int, str]] = attrs.field(factory=dict, init=False)
    """The first formula of those that are alike, and its place."""
    _row: int = attrs.field(default=-1, init=False)
    _column: int = attrs.field(default=-1, init=False)

    def start_row(self, row: Mapping[bytes, bytes]) -> None:
        number = row.get(b"r", b"")
        self._row = int(number) - 1 if number.isdigit() else self._row + 1
        self._column = -1
        if _is_on(row, b"hidden"):
            self.hidden.add(self._row)

    def read_cell(self, cell: Mapping[bytes, bytes], body: bytes) -> None:
        place = _PLACE.match(cell.get(b"r", b""))
        if place is not None:
            self._row, self._column = int(place[2]) - 1, _column(place[1])
        else:
            self._column += 1
        at = self._row, self._column
        style, kind = cell.get(b"s") or b"0", cell.get(b"t", b"n")
        number = int(style) if style.isdigit() else 0
        code = self.styles[number] if number < len(self.styles) else ""
        if code and (kind == b"n" or (kind in _TEXTS and text_formatter(code))):
            self.formats[at] = code
        if kind == b"e" and (error := _ERROR.search(body)):
            self.errors[at] = _text(error[1])
        elif (formula := _FORMULA.search(body)) is not None:
            # A formula may have the empty text as its value.
            is_saved = bool(_VALUE.search(body) or (kind == b"str" and _EMPTY_VALUE.search(body)))
            self._read_formula(at, _attributes(formula[1]), _text(formula[2]), is_saved=is_saved)

    def _read_formula(
        self, at: tuple[int, int], about: Mapping[bytes, bytes], formula: str, *, is_saved: bool
    ) -> None:
        if about.get(b"t") == b"shared":
            if formula:
                self._shared[about.get(b"si", b"")] = (*at, formula)
            elif about.get(b"si") in self._shared:
                row, column, first = self._shared[about[b"si"]]
                formula = _moved(first, at[0] - row, at[1] - column)
        if formula and not is_saved:
            self.formulas[at] = f"={formula}"


def _moved(formula: str, rows: int, columns: int) -> str:
    """Return a formula as it is after a copy to another cell."""

    def moved(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0]
        column = _column(found[2].encode()) + (0 if found[1] else columns)
        row = int(found[4]) + (0 if found[3] else rows)
        return f"{found[1]}{_letters(column).decode()}{found[3]}{row}"

    return _CELL_NAME.sub(moved, formula)


def _texts_of(archive: zipfile.ZipFile, sheet: str) -> list[str]:
    """Return the paragraphs of a sheet's text boxes, and the titles of its charts."""
    drawings = [part for part in zip_parts.relations(archive, sheet).values() if "/drawing" in part]
    charts = [
        part
        for drawing in drawings
        for part in zip_parts.relations(archive, drawing).values()
        if "/chart" in part
    ]
    texts = []
    for name in (*drawings, *charts):
        root, _ = zip_parts.parsed(_part(archive, name))
        for paragraph in () if root is None else root.iter(f"{{{_DRAWING}}}p", f"{{{_STRICT}}}p"):
            text = "".join(piece.text or "" for piece in paragraph.iter("{*}t"))
            texts += [text.strip()] if text.strip() else []
    return texts


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
