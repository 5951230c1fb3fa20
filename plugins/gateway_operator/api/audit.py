"""GET actions: the audit log."""

from quart import Response, request

from gateway.web.front.current import current_gateway
from gateway_operator.api.frame import API, answer, page_asked_for
from gateway_operator.desk.references import find_id
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import needs_scope
from gateway_operator.state import operator


@blueprint.get(f"{API}/actions")
@needs_scope("read")
async def api_actions() -> Response:
    """Return what operators did, newest first, `before` an id."""
    before, limit = page_asked_for()
    subject, action = request.args.get("subject"), request.args.get("action")
    if subject is not None:
        subject = await find_id(operator().desk, subject)
    found = await current_gateway().store.operators.actions(before, limit, subject, action)
    following = found[-1].id if len(found) == limit else None
    return answer({"actions": found, "before": following})
