"""The stylesheet and scripts of the operator's pages, readable without login."""

from quart import Blueprint, Response

from gateway.web.routes.files import answer_asset
from gateway_operator.pages.page import ASSETS_PATH, operator_assets

blueprint = Blueprint("operator_files", __name__)


@blueprint.get(f"{ASSETS_PATH}<name>")
async def asset(name: str) -> Response:
    """Send a file; its name changes with its content."""
    return answer_asset(operator_assets()[name])
