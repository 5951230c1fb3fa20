"""Serves the app in this process, on uvloop, by the server of the operator's choice.

Hypercorn and uvicorn differ in `hypercorn_server.py` and `uvicorn_server.py` only.
"""

import asyncio
import errno
import gc
import signal
import socket
from collections.abc import Awaitable, Callable

import uvloop
from quart import Quart

from gateway.errors import SettingsError
from gateway.redaction import Redactor, secrets_of
from gateway.sandbox.child.prctl import hide_memory
from gateway.settings import Settings, check_server
from gateway.store.data_folder import enter_data, lock_data
from gateway.web import hypercorn_server
from gateway.web.connection_limits import BACKLOG
from gateway.web.logs import configure_logs, redacted_output
from gateway.web.services import EXTENSION

Run = Callable[[Quart, socket.socket, asyncio.Event], Awaitable[None]]


def serve(settings: Settings, create_app: Callable[..., Quart]) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises `SettingsError` for mistakes that the operator can mend: a busy port, a bad folder, a
    server that is not installed.
    """
    check_server(settings)
    redactor = Redactor(secrets_of(settings))
    configure_logs(settings.log_format, redactor)
    enter_data(settings)
    # Our memory holds the keys.
    hide_memory()
    # The lock is held as long as this variable lives.
    lock = lock_data(settings)  # noqa: F841
    listener = listen(settings.bind)
    run = run_of(settings)
    with redacted_output(redactor):
        _run_app(run, create_app(settings, redactor=redactor), listener)


def run_of(settings: Settings) -> Run:
    """Return the function that runs an app by the chosen server."""
    if settings.server == "hypercorn":
        return hypercorn_server.run
    # uvicorn is an extra, and costs memory.
    from gateway.web import uvicorn_server  # noqa: PLC0415

    return uvicorn_server.run


def _run_app(run: Run, app: Quart, listener: socket.socket) -> None:
    # A failed start raises from `_serve`, and our error handlers log every other error.
    app.logger.disabled = True
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(run, app, listener))


def listen(bind: str) -> socket.socket:
    """Open the port before the app starts: early clients wait instead of being refused.

    Raises `SettingsError` where the port cannot be opened.
    """
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(port)), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        is_busy = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        problem = "is in use" if is_busy else f"cannot be opened ({error})"
        raise SettingsError(
            f"{bind} {problem}. Stop the other program, or choose another address and port, such "
            "as GATEWAY_BIND=127.0.0.1:8081"
        ) from None


async def _serve(run: Run, app: Quart, listener: socket.socket) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, _stop_selling, app, stop)
    collection = asyncio.create_task(_start_garbage_collection(app), name="collect")
    try:
        await run(app, listener, stop)
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
