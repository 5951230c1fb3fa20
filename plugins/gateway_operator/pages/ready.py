"""The checks of /api/ready with what only the operator may read."""

from typing import Any

from gateway.running.checks import checks, for_operator
from gateway.web.front.current import current_gateway
from gateway.web.routes.health import describe
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import needs_scope


@blueprint.get("/admin/ready")
@needs_scope("read")
async def ready() -> tuple[dict[str, Any], int]:
    """Answer as /api/ready does, but with the details that only the operator may read."""
    gateway = current_gateway()
    found = await checks(gateway)
    return describe(gateway, found, for_operator(found, gateway))
