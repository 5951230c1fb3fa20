"""A request to Quart ends with its response, even if the server reports nothing more."""

import asyncio

import pytest
from quart import Quart

from gateway.web.front.event_stream import EventConnection
from tests.gateway.web.asgi_calls import Asked

PATIENCE_S = 60


class Silent:
    """A server that has passed on the request, and reports nothing after the response."""

    def __init__(self) -> None:
        self.messages = [{"type": "http.request", "body": b"", "more_body": False}]
        self.sent: list[str] = []

    async def receive(self) -> dict:
        if self.messages:
            return self.messages.pop()
        return await asyncio.get_running_loop().create_future()

    async def send(self, message: dict) -> None:
        self.sent.append(message["type"])


@pytest.fixture
def app() -> Quart:
    app = Quart(__name__)
    app.asgi_http_class = EventConnection

    @app.get("/at-once")
    async def at_once():
        return "answer"

    @app.get("/later")
    async def later():
        await asyncio.sleep(0)
        return "answer"

    return app


@pytest.mark.parametrize("path", [b"/at-once", b"/later", b"/unknown"])
async def test_a_request_ends_with_its_answer(app, path):
    server = Silent()
    async with asyncio.timeout(PATIENCE_S):
        await app(Asked(path=path).scope(), server.receive, server.send)
    assert server.sent[0] == "http.response.start"
    assert server.sent[-1] == "http.response.body"


async def test_an_answer_that_is_not_taken_is_given_up(app):
    server = Silent()
    app.config["RESPONSE_TIMEOUT"] = 0.01

    async def take_nothing(message: dict) -> None:
        server.sent.append(message["type"])
        await asyncio.get_running_loop().create_future()

    async with asyncio.timeout(PATIENCE_S):
        await app(Asked(path=b"/later").scope(), server.receive, take_nothing)
    assert server.sent == ["http.response.start"]
