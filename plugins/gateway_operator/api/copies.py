"""Backups and restore drills: status, and start one now."""

from http import HTTPStatus

from quart import Response

from gateway.web.front.current import current_gateway
from gateway_backups.records import Kind
from gateway_operator.api.frame import API, answer, read_body
from gateway_operator.desk import backups
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import actor, needs_scope
from gateway_operator.state import operator


@blueprint.get(f"{API}/backups")
@needs_scope("read")
async def api_backups() -> Response:
    """Return the status of backups and drills, without a request to the bucket."""
    return answer(await backups.status(operator().desk))


@blueprint.post(f"{API}/backups")
@needs_scope("act")
async def api_back_up() -> Response:
    """Start a backup."""
    return await _begin("backup")


@blueprint.post(f"{API}/drills")
@needs_scope("act")
async def api_drill() -> Response:
    """Start a drill."""
    return await _begin("drill")


async def _begin(kind: Kind) -> Response:
    await read_body()
    await backups.begin(operator().desk, backups.of(current_gateway()), actor(), kind)
    return answer({"begun": kind}, HTTPStatus.ACCEPTED)
