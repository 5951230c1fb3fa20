"""GET overview: what the first page shows."""

from quart import Response, request

from gateway.admin.overview import DEFAULT_PERIOD, read_overview
from gateway.web.routes.admin.api.frame import API, answer
from gateway.web.routes.admin.frame import blueprint
from gateway.web.routes.admin.guards import needs_scope
from gateway.web.services import services


@blueprint.get(f"{API}/overview")
@needs_scope("read")
async def api_overview() -> Response:
    """Return the overview of the period `range`."""
    return answer(await read_overview(services().desk, request.args.get("range", DEFAULT_PERIOD)))
