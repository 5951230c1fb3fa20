"""The books as JSON and CSV."""

from quart import Response, request

from gateway.errors import WrongValue
from gateway_operator.api.frame import API, answer
from gateway_operator.books.export import line_row, line_rows
from gateway_operator.pages.books import answer_csv, read_asked_span, read_books
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import needs_scope
from gateway_operator.state import operator


@blueprint.get(f"{API}/books")
@needs_scope("read")
async def list_books() -> Response:
    """Return the books of `from` to `to` by `day` or `endpoint`; as CSV also by `sale`."""
    span, by = read_asked_span(), request.args.get("by", "day")
    shape = request.args.get("format", "json")
    if shape == "csv":
        return await answer_csv(span, by)
    if shape != "json":
        raise WrongValue("format must be json or csv.")
    found = await read_books(operator().desk, span, by)
    return answer(
        {
            "from": span.first.isoformat(),
            "to": span.last.isoformat(),
            "lines": line_rows(found, by),
            "total": line_row(found.total, by),
        }
    )
