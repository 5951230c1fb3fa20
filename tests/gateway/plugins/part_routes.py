"""The routes of the part under test."""

from quart import Blueprint, request

from gateway.web.front.current import current_gateway


class Counter:
    """The part's state."""

    def __init__(self) -> None:
        self.asked = 0


def make_blueprint() -> Blueprint:
    blueprint = Blueprint("acme", __name__)

    @blueprint.route("/acme", methods=["GET", "POST"])
    async def count():
        counter = current_gateway().find(Counter)
        counter.asked += 1
        return {"asked": counter.asked, "bytes": len(await request.get_data())}

    return blueprint
