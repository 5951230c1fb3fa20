"""Serves the app: Hypercorn in this process, on uvloop, drained on SIGTERM."""

import asyncio
import errno
import gc
import signal
import socket
from collections.abc import Callable
from typing import Any

import uvloop
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config, Sockets
from hypercorn.utils import LifespanFailureError
from quart import Quart

from gateway.errors import SettingsError
from gateway.redaction import Redactor, secrets_of
from gateway.sandbox.child.prctl import hide_memory
from gateway.settings import Settings
from gateway.store.data_folder import enter_data, lock_data
from gateway.web.http1 import speak_http1_only
from gateway.web.logs import configure_logs, redacted_output
from gateway.web.services import EXTENSION, FAILURE

_BACKLOG = 2048
_KEEP_ALIVE_S = 30
# At the end, requests that are being answered have the first time, then the app's draining has the
# second. Fly's `kill_timeout` is 120 s.
_GRACE_S = 10
_STOP_S = 115


def serve(settings: Settings, create_app: Callable[..., Quart]) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises `SettingsError` for mistakes that the operator can mend: a busy port, a bad folder.
    """
    redactor = Redactor(secrets_of(settings))
    configure_logs(settings.log_format, redactor)
    enter_data(settings)
    # Our memory holds the keys.
    hide_memory()
    # The lock is held as long as this variable lives.
    lock = lock_data(settings)  # noqa: F841
    listener = listen(settings.bind)
    speak_http1_only()
    with redacted_output(redactor):
        _run_app(create_app(settings, redactor=redactor), listener)


def _run_app(app: Quart, listener: socket.socket) -> None:
    # A failed start raises from `_serve`, and our error handlers log every other error.
    app.logger.disabled = True
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(app, listener))


def listen(bind: str) -> socket.socket:
    """Open the port before the app starts: early clients wait instead of being refused.

    Raises `SettingsError` where the port cannot be opened.
    """
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(port)), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        is_busy = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        problem = "is in use" if is_busy else f"cannot be opened ({error})"
        raise SettingsError(
            f"{bind} {problem}. Stop the other program, or choose another address and port, such "
            "as GATEWAY_BIND=127.0.0.1:8081"
        ) from None


async def _serve(app: Quart, listener: socket.socket) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, _stop_selling, app, stop)
    collection = asyncio.create_task(_start_garbage_collection(app), name="collect")
    # Hypercorn's types describe an ASGI app by its shape, and Quart's does not fit.
    asgi: Any = app
    try:
        await hypercorn_serve(asgi, hypercorn_config(listener), shutdown_trigger=stop.wait)
    except LifespanFailureError as error:
        raise app.extensions.get(FAILURE, error) from None
    finally:
        collection.cancel()


async def _start_garbage_collection(app: Quart) -> None:
    """Start the garbage collector once everything is imported, and freeze what is loaded by then.

    The command switched the collector off for the imports. Frozen objects are never walked again,
    so they cost requests no time.
    """
    # The app has no event before its start.
    while EXTENSION not in app.extensions:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    await app.extensions[EXTENSION].warmed.wait()
    gc.collect()
    gc.enable()
    gc.freeze()


def _stop_selling(app: Quart, stop: asyncio.Event) -> None:
    """Sell nothing more from now on, and let the server end."""
    gateway = app.extensions.get(EXTENSION)
    if gateway is not None:
        gateway.stop_selling()
    stop.set()


class _Config(Config):
    """Hypercorn's settings, with a listening socket that no child process inherits.

    A child that outlives a killed gateway would keep the port busy for the next gateway.
    """

    def create_sockets(self) -> Sockets:
        """Return Hypercorn's sockets, closed in every child process."""
        sockets = super().create_sockets()
        for listener in sockets.insecure_sockets:
            listener.set_inheritable(False)
        return sockets


def hypercorn_config(listener: socket.socket) -> Config:
    """Return Hypercorn's settings for a socket that listens already; they own the socket."""
    config = _Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.backlog = _BACKLOG
    config.keep_alive_timeout = _KEEP_ALIVE_S
    config.keep_alive_max_requests = 10_000
    # A client that sends nothing for so long is cut off.
    config.read_timeout = _KEEP_ALIVE_S
    config.graceful_timeout = _GRACE_S
    config.shutdown_timeout = _STOP_S
    config.include_server_header = False
    # The app writes its own line for each request, without the query string.
    config.accesslog = None
    config.errorlog = "-"
    config.loglevel = "WARNING"
    return config
