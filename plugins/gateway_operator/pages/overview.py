"""The page Overview, and /admin/ready."""

from typing import Any

from quart import Response, request

from gateway.running.checks import checks, for_operator
from gateway.version import VERSION
from gateway.web.front.current import current_gateway
from gateway.web.routes.health import describe
from gateway_operator.desk.overview import DEFAULT_PERIOD, PERIODS, read_overview
from gateway_operator.pages import chart
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import needs_scope, needs_session
from gateway_operator.state import operator

_WIDE = {"width": 720, "height": 176}
_NARROW = {"width": 372, "height": 150}


@blueprint.get("/admin")
@needs_session
async def overview() -> Response:
    """Show the overview of the period `range`."""
    gateway = current_gateway()
    found = await read_overview(operator().desk, request.args.get("range", DEFAULT_PERIOD))
    drawn = chart.make_chart(found.period, found.bars)
    return await render(
        "overview.html",
        page="overview",
        o=found,
        periods=[(name, name, None) for name in PERIODS],
        network=gateway.settings.network,
        version=VERSION,
        up_s=gateway.now() - gateway.started_at,
        chart=drawn,
        chart_wide=chart.draw(drawn, name="wide", **_WIDE),
        chart_narrow=chart.draw(chart.merge(drawn, 2), name="narrow", **_NARROW),
    )


@blueprint.get("/admin/ready")
@needs_scope("read")
async def ready() -> tuple[dict[str, Any], int]:
    """Respond like /api/ready, with details for the operator."""
    gateway = current_gateway()
    found = await checks(gateway)
    return describe(gateway, found, for_operator(found, gateway))
