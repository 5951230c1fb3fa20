"""Serves `/metrics` on a separate port, for Prometheus in the same private network.

Imported only if `GATEWAY_METRICS_BIND` is set.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gateway.concurrency.shared_answers import SharedAnswer
from gateway.running.gateway import Gateway
from gateway.web.server.hypercorn_server import hypercorn_config, serve_guarded
from gateway.web.server.serve import listen
from gateway_operator.metrics.families import Families
from gateway_operator.metrics.instruments import Instruments
from gateway_operator.metrics.numbers import Numbers, Reader
from gateway_operator.state import operator_of

# Several scrapers share one read of the database.
_TTL_S = 1.0
_log = structlog.get_logger()
_Send = Callable[[dict[str, Any]], Awaitable[None]]


class MetricsServer:
    """Listens on its own address while the gateway runs."""

    def __init__(self, gateway: Gateway, bind: str) -> None:
        self._gateway = gateway
        self._bind = bind
        self._instruments = Instruments()
        self._stop = asyncio.Event()
        self._server: asyncio.Task[None] | None = None
        # Known once it is open.
        self.port = 0

    async def start(self) -> None:
        """Open the port; raises `SettingsError` if that fails."""
        listener = listen(self._bind, setting="GATEWAY_METRICS_BIND")
        self.port = listener.getsockname()[1]
        asgi = _Metrics(self._gateway, self._instruments)
        serving = serve_guarded(asgi, hypercorn_config(listener), self._stop)
        self._server = asyncio.create_task(serving, name="metrics")

    async def close(self) -> None:
        """Close the port."""
        self._stop.set()
        if self._server is not None:
            await asyncio.gather(self._server, return_exceptions=True)
        self._instruments.close()


class _Metrics:
    """An ASGI app with one page."""

    def __init__(self, gateway: Gateway, instruments: Instruments) -> None:
        self._gateway = gateway
        self._instruments = instruments
        self._numbers: SharedAnswer[Numbers] = SharedAnswer(gateway.now, ttl_s=_TTL_S)
        self._reader: Reader | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: _Send) -> None:
        """Serve `GET /metrics`; everything else is not found."""
        if scope["type"] == "lifespan":
            await _answer_lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        if scope["path"] != "/metrics" or scope["method"] not in ("GET", "HEAD"):
            await _answer(send, 404, "text/plain", b"Metrics are at /metrics.\n")
        else:
            await self._answer_metrics(scope, send)

    async def _answer_metrics(self, scope: dict[str, Any], send: _Send) -> None:
        try:
            numbers = await self._read()
        except Exception:  # noqa: BLE001 - an edge: a scrape that fails is shown by Prometheus
            _log.exception("metrics.failed")
            await _answer(send, 500, "text/plain", b"The metrics cannot be read now.\n")
            return
        registry = CollectorRegistry()
        registry.register(Families(numbers, self._gateway.settings.network))
        accepted = dict(scope["headers"]).get(b"accept", b"").decode("latin1")
        encode, content_type = _choose_encoder(accepted)
        registry.register(self._instruments.registry)
        await _answer(send, 200, content_type, encode(registry))

    async def _read(self) -> Numbers:
        if self._reader is None:
            self._reader = Reader(operator_of(self._gateway).desk)
        return await self._numbers.get(self._reader.read)


def _choose_encoder(accepted: str) -> tuple[Callable[[Collector], bytes], str]:
    """Use plain text if the Accept header is malformed."""
    try:
        return choose_encoder(accepted)
    except (TypeError, ValueError):
        # The library raises for a version that is not a number.
        return choose_encoder("")


async def _answer_lifespan(receive: Any, send: _Send) -> None:
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
