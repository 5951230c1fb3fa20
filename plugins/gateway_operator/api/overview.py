"""GET overview: what the first page shows."""

from quart import Response, request

from gateway_operator.api.frame import API, answer
from gateway_operator.desk.overview import DEFAULT_PERIOD, read_overview
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import needs_scope
from gateway_operator.state import operator


@blueprint.get(f"{API}/overview")
@needs_scope("read")
async def api_overview() -> Response:
    """Return the overview of the period `range`."""
    return answer(await read_overview(operator().desk, request.args.get("range", DEFAULT_PERIOD)))
