"""Excel and OpenDocument workbooks, by calamine: the visible cells as a program shows them."""

import datetime as dt
import io

import python_calamine as calamine

from gateway_documents.child import tables, workbook_xml, zip_parts
from gateway_documents.child.number_formats import formatter, general
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.workbook_xml import SheetFacts
from gateway_documents.errors import DAMAGED, ENCRYPTED, NO_TEXT, Unreadable

_MIDNIGHT = dt.time()
_ZIP = b"PK"


def parse(data: bytes) -> Parsed:
    """Return each visible sheet as a table under its name.

    Numbers look as in the program, dates as ISO 8601. A formula without a saved value is printed
    as the formula. Hidden sheets, rows and columns are left out, with a note.
    """
    facts: dict[str, SheetFacts] = {}
    if data.startswith(_ZIP):
        zip_parts.refuse_doctype(data)
        data = workbook_xml.compacted(data, tables.MAX_CELLS)
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
        raise Unreadable(DAMAGED) from None
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
    rows = []
    for at, values in enumerate(sheet.to_python(skip_empty_area=True), first_row):
        if at in facts.hidden_rows:
            continue
        rows.append(
            [
                _cell(value, (at, column), facts)
                for column, value in enumerate(values, first_column)
                if column not in facts.hidden_columns
            ]
        )
    table = tables.to_markdown(rows)
    return f"## {name}\n\n{table}" if table else ""


def _cell(value: object, at: tuple[int, int], facts: SheetFacts) -> str:
    """Return a cell's text as a person sees it."""
    if value == "":
        value = facts.formulas.get(at, "")
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
