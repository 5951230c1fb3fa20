"""Serves `/metrics` on a port of its own, for a Prometheus in the same private network.

Only `server.py` imports this module, and only where `GATEWAY_METRICS_BIND` is set.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from quart import Quart

from gateway.concurrency.shared_answers import SharedAnswer
from gateway.web.server.hypercorn_server import hypercorn_config, serve_guarded
from gateway.web.services import EXTENSION, Services
from gateway_operator.metrics.families import Families
from gateway_operator.metrics.instruments import Instruments
from gateway_operator.metrics.numbers import Numbers, Reader

# Several scrapers share one look at the database.
_KEPT_S = 1.0
_log = structlog.get_logger()
_Send = Callable[[dict[str, Any]], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving_metrics(app: Quart, listener: socket.socket) -> AsyncIterator[None]:
    """Serve the app's metrics within the block; takes the socket over."""
    instruments = Instruments()
    stop = asyncio.Event()
    server = asyncio.create_task(
        serve_guarded(_Metrics(app, instruments), hypercorn_config(listener), stop),
        name="metrics",
    )
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(server, return_exceptions=True)
        instruments.close()


class _Metrics:
    """An ASGI app with one page."""

    def __init__(self, app: Quart, instruments: Instruments) -> None:
        self._app = app
        self._instruments = instruments
        self._reader: Reader | None = None
        self._numbers: SharedAnswer[Numbers] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: _Send) -> None:
        """Answer `GET /metrics`; everything else is not found."""
        if scope["type"] == "lifespan":
            await _answer_lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        # Missing before the start.
        gateway: Services | None = self._app.extensions.get(EXTENSION)
        if scope["path"] != "/metrics" or scope["method"] not in ("GET", "HEAD"):
            await _answer(send, 404, "text/plain", b"Metrics are at /metrics.\n")
        elif gateway is None:
            await _answer(send, 503, "text/plain", b"The gateway is starting.\n")
        else:
            await self._answer_metrics(gateway, scope, send)

    async def _answer_metrics(self, gateway: Services, scope: dict[str, Any], send: _Send) -> None:
        try:
            numbers = await self._read(gateway)
        except Exception:  # noqa: BLE001 - an edge: a scrape that fails is shown by Prometheus
            _log.exception("metrics.failed")
            await _answer(send, 500, "text/plain", b"The numbers cannot be read now.\n")
            return
        registry = CollectorRegistry()
        registry.register(Families(numbers, gateway.settings.network))
        accepted = dict(scope["headers"]).get(b"accept", b"").decode("latin1")
        encode, content_type = _choose_encoder(accepted)
        registry.register(self._instruments.registry)
        await _answer(send, 200, content_type, encode(registry))

    async def _read(self, gateway: Services) -> Numbers:
        if self._reader is None or self._numbers is None:
            self._reader = Reader(gateway.desk)
            self._numbers = SharedAnswer(gateway.now, kept_s=_KEPT_S)
        return await self._numbers.get(self._reader.read)


def _choose_encoder(accepted: str) -> tuple[Callable[[Collector], bytes], str]:
    """Return what writes the metrics, and its content type; plain text for an unreadable Accept."""
    try:
        return choose_encoder(accepted)
    except (TypeError, ValueError):
        # The library compares the parts of a version that are no numbers with numbers.
        return choose_encoder("")


async def _answer_lifespan(receive: Any, send: _Send) -> None:
    """Agree to start and to stop."""
    for _ in range(2):
        message = await receive()
        await send({"type": message["type"] + ".complete"})


async def _answer(send: _Send, status: int, content_type: str, body: bytes) -> None:
    headers = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
