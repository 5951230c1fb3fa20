"""Excel and OpenDocument workbooks, by calamine: the visible cells as a program shows them."""

import contextlib
import datetime as dt
import io
import re
from collections.abc import Iterator, Mapping, Sequence

import python_calamine as calamine

from gateway_documents.child import escaping, tables
from gateway_documents.child.office import open_document, zip_parts
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.sheets import workbook_xml
from gateway_documents.child.sheets.number_formats import (
    elapsed,
    formatter,
    general,
    text_formatter,
)
from gateway_documents.child.sheets.workbook_xml import SheetFacts
from gateway_documents.errors import DAMAGED, ENCRYPTED, Unreadable

_COMMENTS_NOTE = "Comments were left out."
_MIDNIGHT = dt.time()
_ANY_DAY = dt.date(2000, 1, 1)
_ZIP = b"PK"
# Records of an older workbook: its beginning, maybe the one against writing, and the password
# (MS-XLS §2.4.117).
_LOCKED = re.compile(
    rb"\x09\x08(?:\x10\0.{16}|\x08\0.{8})(?:\x86\0\0\0)?\x2f\0[\x04-\xff]\0", re.DOTALL
)


def parse(data: bytes) -> Parsed:
    """Return each visible sheet as a table under its name, and the text of its text boxes.

    Numbers look as in the program, dates as ISO 8601. A formula without a saved value is printed
    as the formula. Hidden sheets, rows and columns are left out, with a note.
    """
    if not data.startswith(_ZIP):
        return _parse_older(data)
    data = zip_parts.with_slashes(data)
    zip_parts.refuse_doctype(data)
    if workbook_xml.is_utf_16(data):
        data = workbook_xml.repaired(data)
    data, found = open_document.prepared(data)
    notes = [*found, *([_COMMENTS_NOTE] if workbook_xml.has_comments(data) else [])]
    data = workbook_xml.unindented(workbook_xml.compacted(data, tables.MAX_CELLS))
    with contextlib.suppress(calamine.CalamineError):
        parsed = _parse(data, workbook_xml.read(data), notes)
        if parsed.pages or workbook_xml.repaired(data) is data:
            return parsed
    data = workbook_xml.repaired(data)
    parsed = _parse(data, workbook_xml.read(data), [*notes, zip_parts.DAMAGED_NOTE])
    if not parsed.pages:
        raise Unreadable(DAMAGED)
    return parsed


def _parse_older(data: bytes) -> Parsed:
    try:
        return _parse(data, {}, ())
    except calamine.CalamineError:
        raise Unreadable(ENCRYPTED if _LOCKED.search(data) else DAMAGED) from None


def _parse(data: bytes, facts: Mapping[str, SheetFacts], notes: Sequence[str]) -> Parsed:
    try:
        with calamine.load_workbook(io.BytesIO(data)) as book:
            shown = [meta for meta in book.sheets_metadata if _is_shown(meta, facts)]
            hidden = len(book.sheets_metadata) - len(shown)
            pages = [_page(book, meta, facts.get(meta.name, SheetFacts())) for meta in shown]
    except calamine.PasswordError:
        raise Unreadable(ENCRYPTED) from None
    pages = [page for page in pages if page]
    return Parsed(pages, (*_notes(hidden, facts), *notes))


def _is_shown(meta: calamine.SheetMetadata, facts: Mapping[str, SheetFacts]) -> bool:
    """Whether a sheet is visible, and has cells or is a chart with words."""
    has_words = meta.name in facts and bool(facts[meta.name].texts)
    kinds = calamine.SheetTypeEnum
    return meta.visible == calamine.SheetVisibleEnum.Visible and (
        meta.typ == kinds.WorkSheet or (meta.typ == kinds.ChartSheet and has_words)
    )


def _notes(hidden_sheets: int, facts: Mapping[str, SheetFacts]) -> list[str]:
    notes = []
    if hidden_sheets:
        notes.append(f"Sheets that are hidden or hold no cells, left out: {hidden_sheets}.")
    if any(fact.hidden_rows or fact.hidden_columns for fact in facts.values()):
        notes.append("Hidden rows and columns were left out.")
    formulas = sum(len(fact.formulas) for fact in facts.values())
    if formulas:
        notes.append(f"Formulas without a saved value, printed as formulas: {formulas:,}.")
    return notes


def _page(book: calamine.CalamineWorkbook, meta: calamine.SheetMetadata, facts: SheetFacts) -> str:
    is_chart = meta.typ == calamine.SheetTypeEnum.ChartSheet
    table = "" if is_chart else _table(book.get_sheet_by_name(meta.name), facts)
    blocks = [table, *map(escaping.paragraph, facts.texts)]
    blocks = [block for block in blocks if block]
    return "\n\n".join((f"## {escaping.inline(meta.name)}", *blocks)) if blocks else ""


def _table(sheet: calamine.CalamineSheet, facts: SheetFacts) -> str:
    first_row, first_column = sheet.start or (0, 0)
    if sheet.height * sheet.width > tables.MAX_CELLS:
        raise Unreadable(
            f"The file is too large: a table of {sheet.height:,} rows and {sheet.width:,} columns."
        )
    # By column. calamine's sheet ends at its last value; formulas without one may be outside.
    rows: dict[int, dict[int, str]] = {}
    for at, values in enumerate(sheet.to_python(skip_empty_area=True), first_row):
        cells = enumerate(values, first_column)
        rows[at] = {column: _cell(value, (at, column), facts) for column, value in cells}
    for (at, column), text in (*facts.formulas.items(), *facts.errors.items()):
        cells_of_row = rows.setdefault(at, {})
        if not cells_of_row.get(column):
            cells_of_row[column] = tables.cell_text(text)
    return tables.to_markdown(_visible(rows, facts))


def _visible(rows: Mapping[int, Mapping[int, str]], facts: SheetFacts) -> Iterator[list[str]]:
    width = max((max(row, default=-1) for row in rows.values()), default=-1) + 1
    columns = [column for column in range(width) if column not in facts.hidden_columns]
    for at in sorted(rows):
        if at not in facts.hidden_rows:
            yield [rows[at].get(column, "") for column in columns]


def _cell(value: object, at: tuple[int, int], facts: SheetFacts) -> str:
    """Return a cell's text as a person sees it."""
    code = facts.formats.get(at, "")
    match value:
        case bool():
            return str(value).upper()
        case int() | float():
            return tables.cell_text(formatter(code)(value)) if code else general(value)
        case dt.datetime():
            rounded = _to_seconds(value)
            is_day = rounded.time() == _MIDNIGHT
            return rounded.date().isoformat() if is_day else rounded.isoformat(" ", "seconds")
        case dt.time():
            return _to_seconds(dt.datetime.combine(_ANY_DAY, value)).time().isoformat("seconds")
        case dt.timedelta():
            return elapsed(code, value.total_seconds()) or _duration(value)
    as_text = text_formatter(code) if code else None
    return tables.cell_text(as_text(str(value)) if as_text else str(value))


def _to_seconds(value: dt.datetime) -> dt.datetime:
    """Round to seconds: Excel stores parts of days, which hold no exact times."""
    return (value + dt.timedelta(microseconds=500_000)).replace(microsecond=0)


def _duration(value: dt.timedelta) -> str:
    """Return hours, minutes and seconds; the hours go beyond 24, as with Excel's `[h]:mm:ss`."""
    seconds = round(abs(value).total_seconds())
    sign = "-" if value < dt.timedelta() else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
