"""The operator's pages, a module each, with the JSON API, the overview and the assets."""

from typing import Any

from quart import Blueprint, Response, request

from gateway.running.checks import checks, for_operator
from gateway.version import VERSION
from gateway.web.front.current import current_gateway
from gateway.web.routes.files import answer_asset
from gateway.web.routes.health import describe
from gateway_operator import api
from gateway_operator.desk.comparison import read_before
from gateway_operator.desk.overview import DEFAULT_PERIOD, PERIODS, read_overview
from gateway_operator.pages import (
    access,
    books,
    chart,
    endpoints,
    fallbacks,
    list_exports,
    login,
    passkeys,
    payments,
    refunds,
    settings,
    system,
    tasks,
    trials,
)
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import needs_scope, needs_session
from gateway_operator.pages.page import ASSETS_PATH, operator_assets
from gateway_operator.state import operator

# Importing a module registers its routes in the blueprint.
MODULES = (
    access,
    *api.MODULES,
    books,
    endpoints,
    fallbacks,
    list_exports,
    login,
    passkeys,
    payments,
    refunds,
    settings,
    system,
    tasks,
    trials,
)

__all__ = ["MODULES", "make_blueprint"]

_WIDE = {"width": 720, "height": 176}
_NARROW = {"width": 372, "height": 150}
# Readable without login.
_files = Blueprint("operator_files", __name__)


def make_blueprint() -> Blueprint:
    """Return the blueprint of pages, API and assets."""
    operators = Blueprint("operators", __name__)
    operators.register_blueprint(blueprint)
    operators.register_blueprint(_files)
    return operators


@_files.get(f"{ASSETS_PATH}<name>")
async def asset(name: str) -> Response:
    """Send a file; its name changes with its content."""
    return answer_asset(operator_assets()[name])


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
        before=await read_before(operator().desk, found.period),
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
