"""Serves the app in this process on uvloop, by Hypercorn or a server of a plugin."""

import asyncio
import errno
import gc
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, cast

import structlog
import uvloop
from quart import Quart

from gateway.chain.known_keys import refuse_known_wallet
from gateway.errors import SettingsError
from gateway.installed import load_opener
from gateway.plugins.installed import BUNDLED, find_sections, prepare_database
from gateway.running.gateway import Gateway
from gateway.sandbox.child.prctl import hide_memory
from gateway.settings import Settings, check_database, check_openers
from gateway.settings.page_values import make_readable
from gateway.store.data_folder import enter_data, lock_data
from gateway.store.page_settings import warn_of_unread, with_page_settings
from gateway.store.running_process import RunningProcess
from gateway.telemetry.logs import configure_logs, redacted_output
from gateway.telemetry.redaction import Redactor, secrets_of
from gateway.web.front.current import EXTENSION
from gateway.web.server import hypercorn_server
from gateway.web.server.connection_limits import BACKLOG, IDLE_S
from gateway.web.server.hangups import Hangups
from gateway.web.server.open_connections import raise_descriptor_limit

_log = structlog.get_logger()
Run = Callable[[Quart, socket.socket, asyncio.Event], Awaitable[None]]
# Threshold of the garbage collector's youngest generation. Requests that wait for the chain keep
# thousands of objects alive, which Python's default of 700 would scan repeatedly.
_YOUNG_OBJECTS = 10_000
# For tasks that are cancelled as the process ends.
_LAST_TASKS_S = 2.0


def serve(
    settings: Settings,
    create_app: Callable[..., Quart],
    on_started: Callable[[Gateway], None],
    hangups: Hangups,
) -> None:
    """Serve until SIGTERM or SIGINT, and call `on_started` once all parts have started.

    Raises `SettingsError` for mistakes of the operator, such as a busy port, a bad folder or a
    server that is not installed, and if the process must be restarted.
    """
    run = run_of(settings)
    check_openers(settings)
    check_database(settings)
    refuse_known_wallet(settings)
    redactor = Redactor(secrets_of(settings, find_sections(settings)))
    configure_logs(settings.log_format, redactor, packages=BUNDLED)
    enter_data(settings)
    # The process's memory contains the keys.
    hide_memory()
    raise_descriptor_limit()
    prepare_database(settings)
    process = RunningProcess(lock_data(settings))
    listener = listen(settings.bind)
    with redacted_output(redactor):
        app = _create(create_app, with_page_settings(settings), redactor)
        # `_serve` raises startup errors, and the error handlers log all others.
        app.logger.disabled = True
        _run_to_end(_serve(run, app, listener, on_started, process, hangups))
    # The process ended because of its database, so it must be restarted.
    gateway: Gateway | None = app.extensions.get(EXTENSION)
    if gateway is not None and gateway.store.fitness.problem:
        raise SettingsError(gateway.store.fitness.problem)


def _create(create_app: Callable[..., Quart], settings: Settings, redactor: Redactor) -> Quart:
    """Create the app, without the page's values that a plugin refuses.

    Otherwise a value from the page would keep the gateway, and so the page, from starting.
    """
    readable, app = make_readable(settings, lambda tried: create_app(tried, redactor=redactor))
    if readable is not settings:
        warn_of_unread(readable)
    return app


def run_of(settings: Settings) -> Run:
    """Return the function that runs the chosen server.

    Raises `SettingsError` for a server that is not installed or whose plugin is disabled.
    """
    if settings.server == "hypercorn":
        return hypercorn_server.run
    open_server = load_opener(
        "gateway.servers", "GATEWAY_SERVER", settings.server, settings.plugins_disabled
    )
    run: Run = open_server(settings)
    return run


def listen(bind: str, *, setting: str = "GATEWAY_BIND") -> socket.socket:
    """Open the port before startup, so that early clients wait instead of being refused.

    `[::]` includes IPv4, whatever the system's default (net.ipv6.bindv6only). Raises
    `SettingsError`, which names `setting`, if the port cannot be opened.
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
            f"as {setting}=127.0.0.1:8081"
        ) from None
    # Linux then aborts connections whose clients read no answer. Accepted sockets inherit it.
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(IDLE_S * 1000))
    return listener


def _resolve(bind: str) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """Return the family and socket address to listen on, preferring IPv4.

    A name may have IPv6 addresses only, such as Fly's `fly-local-6pn`.
    """
    host, _, port = bind.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    family, *_, place = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, (place[0], int(port), *place[2:])


def _run_to_end(main: Coroutine[Any, Any, None]) -> None:
    """Run the gateway, and leave behind what a plugin does not let end.

    `asyncio.run` would wait for it for ever.
    """
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        runner.run(main)
    finally:
        if runner.run(_end_tasks()):
            runner.close()


async def _end_tasks() -> bool:
    """Cancel every other task; returns whether all have ended in time."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        _, tasks = await asyncio.wait(tasks, timeout=_LAST_TASKS_S)
    if tasks:
        _log.error("stop.tasks_left", tasks=sorted(task.get_name() for task in tasks))
    return not tasks


async def _serve(
    run: Run,
    app: Quart,
    listener: socket.socket,
    on_started: Callable[[Gateway], None],
    process: RunningProcess,
    hangups: Hangups,
) -> None:
    asked, stop, reloading = asyncio.Event(), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, _stop_selling, app, asked)

    def on_hangup() -> None:
        if hangups.end_the_gateway:
            _stop_selling(app, asked)
        else:
            reloading.set()

    loop.add_signal_handler(signal.SIGHUP, on_hangup)
    if hangups.is_held:
        on_hangup()
    tasks = [
        asyncio.create_task(_reload_when_asked(app, reloading, process), name="reload"),
        asyncio.create_task(_start_garbage_collection(app), name="collect"),
        asyncio.create_task(_drain_then_stop(app, asked, stop), name="stop"),
        asyncio.create_task(_stop_if_unfit(app, asked), name="fitness"),
        asyncio.create_task(_stop_if_asleep(app, stop), name="sleep"),
        asyncio.create_task(_report_start(app, on_started), name="started"),
    ]
    try:
        await run(app, listener, stop)
    finally:
        for task in tasks:
            task.cancel()


async def _start_garbage_collection(app: Quart) -> None:
    """Enable the garbage collector after warm-up, and freeze all objects loaded by then.

    The command disabled it for the imports. Frozen objects are never scanned again.
    """
    gateway = await _started(app)
    await gateway.lifecycle.warmed.wait()
    gc.collect()
    gc.enable()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


async def _stop_if_unfit(app: Quart, asked: asyncio.Event) -> None:
    """Stop the process once it must no longer use its database."""
    gateway = await _started(app)
    await gateway.lifecycle.unfit.wait()
    asked.set()


async def _stop_if_asleep(app: Quart, stop: asyncio.Event) -> None:
    """Stop the server once nothing needs the process.

    Unlike at SIGTERM, the socket closes first, while the gateway still sells: a request that came
    at the last moment is answered, and the parts drain afterwards.
    """
    gateway = await _started(app)
    await gateway.lifecycle.asleep.wait()
    stop.set()


async def _report_start(app: Quart, on_started: Callable[[Gateway], None]) -> None:
    gateway = await _started(app)
    # After the parts' start, which may still fail.
    await gateway.lifecycle.started.wait()
    on_started(gateway)


async def _started(app: Quart) -> Gateway:
    # The app has no event for its startup.
    while EXTENSION not in app.extensions:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    return cast(Gateway, app.extensions[EXTENSION])


def _stop_selling(app: Quart, asked: asyncio.Event) -> None:
    gateway = app.extensions.get(EXTENSION)
    if gateway is not None:
        gateway.lifecycle.stop_selling()
    asked.set()


async def _reload_when_asked(app: Quart, reloading: asyncio.Event, process: RunningProcess) -> None:
    """Reload the plugins' endpoints at each SIGHUP, and note how it went."""
    gateway = await _started(app)
    await gateway.lifecycle.started.wait()
    _note(process.note_start)
    while True:
        await reloading.wait()
        reloading.clear()
        _note(process.note_begin)
        done = await gateway.reloads.run()
        _note(partial(process.note_reload, done.sentences, is_whole=done.is_whole))


def _note(write: Callable[[], None]) -> None:
    try:
        write()
    except OSError as error:
        _log.exception("catalog.reload_not_noted", error=type(error).__name__)


async def _drain_then_stop(app: Quart, asked: asyncio.Event, stop: asyncio.Event) -> None:
    """Keep serving until the work in progress is drained, then stop the server.

    A task may take more than a minute, so stopping at once would be an outage at each deployment.
    """
    await asked.wait()
    try:
        gateway = app.extensions.get(EXTENSION)
        if gateway is not None:
            await gateway.lifecycle.drain()
    except Exception:  # noqa: BLE001 - the process must stop, whatever fails
        _log.exception("stop.drain_failed")
    finally:
        stop.set()
