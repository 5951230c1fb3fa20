"""The books as JSON and CSV."""

from quart import Response, request

from gateway.admin.books.export import line_row, line_rows
from gateway.errors import WrongValue
from gateway.web.routes.admin.api.frame import API, answer
from gateway.web.routes.admin.books import answer_csv, read_asked_span, read_books
from gateway.web.routes.admin.frame import blueprint
from gateway.web.routes.admin.guards import needs_scope
from gateway.web.services import services


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
    found = await read_books(services().desk, span, by)
    return answer(
        {
            "from": span.first.isoformat(),
            "to": span.last.isoformat(),
            "lines": line_rows(found, by),
            "total": line_row(found.total, by),
        }
    )
