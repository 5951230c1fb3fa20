"""Excel and OpenDocument workbooks, by calamine: the visible cells as a program shows them."""

import datetime as dt
import io
import re
from collections.abc import Iterator, Mapping

import python_calamine as calamine

from gateway_documents.child import escaping, tables, workbook_xml, zip_parts
from gateway_documents.child.number_formats import formatter, general
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.workbook_xml import SheetFacts
from gateway_documents.errors import DAMAGED, ENCRYPTED, NO_TEXT, Unreadable

_MIDNIGHT = dt.time()
_ZIP = b"PK"
# Records of an older workbook: its beginning, maybe the one against writing, and the password
# (MS-XLS §2.4.117).
_LOCKED = re.compile(
    rb"\x09\x08(?:\x10\0.{16}|\x08\0.{8})(?:\x86\0\0\0)?\x2f\0[\x04-\xff]\0", re.DOTALL
)


def parse(data: bytes) -> Parsed:
    """Return each visible sheet as a table under its name.

    Numbers look as in the program, dates as ISO 8601. A formula without a saved value is printed
    as the formula. Hidden sheets, rows and columns are left out, with a note.
    """
    facts: dict[str, SheetFacts] = {}
    if data.startswith(_ZIP):
        zip_parts.refuse_doctype(data)
        data = workbook_xml.unindented(workbook_xml.compacted(data, tables.MAX_CELLS))
        facts = workbook_xml.read(data)
    try:
        with calamine.load_workbook(io.BytesIO(data)) as book:
            shown = [
                (meta.name, book.get_sheet_by_name(meta.name))
                for meta in book.sheets_metadata
                if meta.visible == calamine.SheetVisibleEnum.Visible
                and meta.typ == calamine.SheetTypeEnum.WorkSheet
            ]
            hidden = len(book.sheets_metadata) - len(shown)
            pages = [_page(name, sheet, facts.get(name, SheetFacts())) for name, sheet in shown]
    except calamine.PasswordError:
        raise Unreadable(ENCRYPTED) from None
    except calamine.CalamineError:
        is_locked = not data.startswith(_ZIP) and _LOCKED.search(data)
        raise Unreadable(ENCRYPTED if is_locked else DAMAGED) from None
    pages = [page for page in pages if page]
    if not pages:
        raise Unreadable(NO_TEXT)
    return Parsed(pages, tuple(_notes(hidden, facts)))


def _notes(hidden_sheets: int, facts: dict[str, SheetFacts]) -> list[str]:
    notes = []
    if hidden_sheets:
        notes.append(f"Sheets that are hidden or hold no cells, left out: {hidden_sheets}.")
    if any(fact.hidden_rows or fact.hidden_columns for fact in facts.values()):
        notes.append("Hidden rows and columns were left out.")
    formulas = sum(len(fact.formulas) for fact in facts.values())
    if formulas:
        notes.append(f"Formulas without a saved value, printed as formulas: {formulas:,}.")
    return notes


def _page(name: str, sheet: calamine.CalamineSheet, facts: SheetFacts) -> str:
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
    table = tables.to_markdown(_visible(rows, facts))
    return f"## {escaping.inline(name)}\n\n{table}" if table else ""


def _visible(rows: Mapping[int, Mapping[int, str]], facts: SheetFacts) -> Iterator[list[str]]:
    width = max((max(row, default=-1) for row in rows.values()), default=-1) + 1
    columns = [column for column in range(width) if column not in facts.hidden_columns]
    for at in sorted(rows):
        if at not in facts.hidden_rows:
            yield [rows[at].get(column, "") for column in columns]


def _cell(value: object, at: tuple[int, int], facts: SheetFacts) -> str:
    """Return a cell's text as a person sees it."""
    match value:
        case bool():
            return str(value).upper()
        case int() | float():
            code = facts.formats.get(at)
            return tables.cell_text(formatter(code)(value)) if code else general(value)
        case dt.datetime():
            is_day = value.time() == _MIDNIGHT
            return value.date().isoformat() if is_day else value.isoformat(" ", "seconds")
        case dt.timedelta():
            return _duration(value)
    return tables.cell_text(str(value))


def _duration(value: dt.timedelta) -> str:
    """Return hours, minutes and seconds; the hours go beyond 24, as with Excel's `[h]:mm:ss`."""
    seconds = round(abs(value).total_seconds())
    sign = "-" if value < dt.timedelta() else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
