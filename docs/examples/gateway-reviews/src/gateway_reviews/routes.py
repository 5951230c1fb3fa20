"""`POST /reviews`. This module is imported with the first request."""

from quart import Blueprint, request

from gateway import current_gateway
from gateway_reviews import ratings


def make_blueprint() -> Blueprint:
    """Return the route."""
    blueprint = Blueprint("reviews", __name__)

    @blueprint.post("/reviews")
    async def review() -> tuple[dict[str, str], int]:
        body = await request.get_json()
        task_id, stars = body.get("taskId"), body.get("stars")
        if not isinstance(task_id, str) or stars not in (1, 2, 3, 4, 5):
            return {"error": "Send a taskId, and stars from 1 to 5."}, 400
        if not await current_gateway().store.write(ratings.add, task_id, stars):
            return {"error": "There is no completed task with this id."}, 404
        return {"thanks": task_id}, 200

    return blueprint
