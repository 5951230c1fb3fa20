"""Serves the app in this process, on uvloop, by the server of the operator's choice.

Hypercorn and uvicorn differ in `hypercorn_server.py` and `uvicorn_server.py` only.
"""

import asyncio
import errno
import gc
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

import structlog
import uvloop
from quart import Quart

from gateway.errors import SettingsError
from gateway.plugins.installed import BUNDLED, find_sections, prepare_database
from gateway.running.gateway import Gateway
from gateway.sandbox.child.prctl import hide_memory
from gateway.settings import Settings, check_database, check_limits, check_server
from gateway.store.data_folder import enter_data, lock_data
from gateway.telemetry.logs import configure_logs, redacted_output
from gateway.telemetry.redaction import Redactor, secrets_of
from gateway.web.front.current import EXTENSION
from gateway.web.server import hypercorn_server
from gateway.web.server.connection_limits import BACKLOG, IDLE_S

_log = structlog.get_logger()
Run = Callable[[Quart, socket.socket, asyncio.Event], Awaitable[None]]
# So many new objects are looked through for garbage at once. Requests that wait for the chain have
# some thousands that live, and Python's 700 looks through them again and again.
_YOUNG_OBJECTS = 10_000


def serve(settings: Settings, create_app: Callable[..., Quart]) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises `SettingsError` for mistakes that the operator can mend: a busy port, a bad folder, a
    server that is not installed; and where the process ended by itself, to be started again.
    """
    check_server(settings)
    check_limits(settings)
    check_database(settings)
    redactor = Redactor(secrets_of(settings, find_sections(settings)))
    configure_logs(settings.log_format, redactor, packages=BUNDLED)
    enter_data(settings)
    # Our memory holds the keys.
    hide_memory()
    prepare_database(settings)
    # The lock is held as long as this variable lives.
    lock = lock_data(settings)  # noqa: F841
    listener = listen(settings.bind)
    run = run_of(settings)
    with redacted_output(redactor):
        app = create_app(settings, redactor=redactor)
        _run_app(run, app, listener)
    _raise_if_unfit(app)


def _raise_if_unfit(app: Quart) -> None:
    """Raise `SettingsError` where the process ended by itself, so that it is started again."""
    gateway: Gateway | None = app.extensions.get(EXTENSION)
    if gateway is not None and gateway.store.fitness.problem:
        raise SettingsError(gateway.store.fitness.problem)


def run_of(settings: Settings) -> Run:
    """Return the function that runs an app by the chosen server."""
    if settings.server == "hypercorn":
        return hypercorn_server.run
    # uvicorn is an extra, and costs memory.
    from gateway.web.server import uvicorn_server  # noqa: PLC0415

    return uvicorn_server.run


def _run_app(run: Run, app: Quart, listener: socket.socket) -> None:
    # A failed start raises from `_serve`, and our error handlers log every other error.
    app.logger.disabled = True
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(run, app, listener))


def listen(bind: str) -> socket.socket:
    """Open the port before the app starts: early clients wait instead of being refused.

    `[::]` takes IPv4 as well, whatever the system's default is (net.ipv6.bindv6only). Raises
    `SettingsError` where the port cannot be opened.
    """
    try:
        family, place = _resolve(bind)
        is_both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listener = socket.create_server(
            place, family=family, backlog=BACKLOG, dualstack_ipv6=is_both
        )
    except (OSError, OverflowError, UnicodeError) as error:
        is_busy = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        problem = "is in use" if is_busy else f"cannot be opened ({error})"
        raise SettingsError(
            f"{bind} {problem}. Stop the other program, or choose another address and port, such "
            "as GATEWAY_BIND=127.0.0.1:8081"
        ) from None
    _cut_off_silent_readers(listener)
    return listener


def _cut_off_silent_readers(listener: socket.socket) -> None:
    """Let the operating system end connections whose clients read nothing of an answer.

    Accepted connections inherit the option. Other systems than Linux do not have it.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(IDLE_S * 1000))


def _resolve(bind: str) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """Return the family and the socket address to listen on.

    A name may have IPv6 addresses alone, as Fly's `fly-local-6pn`; else its IPv4 one is taken.
    """
    host, _, port = bind.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    family, *_, place = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, (place[0], int(port), *place[2:])


async def _serve(run: Run, app: Quart, listener: socket.socket) -> None:
    asked, stop = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, _stop_selling, app, asked)
    collection = asyncio.create_task(_start_garbage_collection(app), name="collect")
    stopping = asyncio.create_task(_drain_then_stop(app, asked, stop), name="stop")
    fitness = asyncio.create_task(_stop_where_unfit(app, asked), name="fitness")
    try:
        await run(app, listener, stop)
    finally:
        collection.cancel()
        stopping.cancel()
        fitness.cancel()


async def _start_garbage_collection(app: Quart) -> None:
    """Start the garbage collector once everything is imported, and freeze what is loaded by then.

    The command switched the collector off for the imports. Frozen objects are never walked again,
    so they cost requests no time.
    """
    gateway = await _started(app)
    await gateway.lifecycle.warmed.wait()
    gc.collect()
    gc.enable()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


async def _stop_where_unfit(app: Quart, asked: asyncio.Event) -> None:
    """Let the process end once it may not go on with its database."""
    gateway = await _started(app)
    await gateway.lifecycle.unfit.wait()
    asked.set()


async def _started(app: Quart) -> Gateway:
    """Return the gateway once it has started."""
    # The app has no event before its start.
    while EXTENSION not in app.extensions:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    return cast(Gateway, app.extensions[EXTENSION])


def _stop_selling(app: Quart, asked: asyncio.Event) -> None:
    """Sell nothing more from now on."""
    gateway = app.extensions.get(EXTENSION)
    if gateway is not None:
        gateway.lifecycle.stop_selling()
    asked.set()


async def _drain_then_stop(app: Quart, asked: asyncio.Event, stop: asyncio.Event) -> None:
    """Let the server serve until what has begun has ended, then let it end.

    An outage at each new version would be the alternative: a task may take more than a minute.
    """
    await asked.wait()
    try:
        gateway = app.extensions.get(EXTENSION)
        if gateway is not None:
            await gateway.lifecycle.drain()
    except Exception:  # noqa: BLE001 - whatever fails, a process that was told to stop stops
        _log.exception("stop.drain_failed")
    finally:
        stop.set()
