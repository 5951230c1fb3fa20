"""The routes of the part under test."""

import asyncio

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


def make_bad_blueprint() -> Blueprint:
    """Each route leaves in a way that would end the process, or the connection."""
    blueprint = Blueprint("bad", __name__)

    @blueprint.before_request
    async def before():
        if request.args.get("before"):
            raise SystemExit(4)

    @blueprint.get("/bad/exits")
    async def exits():
        raise SystemExit(4)

    @blueprint.get("/bad/exits-in-thread")
    def exits_in_thread():
        raise SystemExit(4)

    @blueprint.get("/bad/interrupts")
    async def interrupts():
        raise KeyboardInterrupt

    @blueprint.get("/bad/cancels")
    async def cancels():
        raise asyncio.CancelledError

    @blueprint.get("/bad/nothing")
    async def nothing():
        return None

    @blueprint.get("/bad/object")
    async def answers_object():
        return object()

    @blueprint.get("/bad/header")
    async def header():
        return "a", 200, {"X-Bad": "a\r\nb: c"}

    return blueprint


def exit_on_import() -> Blueprint:
    raise SystemExit(4)
