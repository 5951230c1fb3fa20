"""The guided demo: an embedded chain, a gateway on it, and four purchases with play money."""

import signal
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from gateway.version import VERSION
from gateway_demo.tour.errors import DemoError
from gateway_demo.tour.place import Place
from gateway_demo.tour.processes import Child, choose_port, ignored_settings
from gateway_demo.tour.screen import NOTABLE, Screen

_WATCH_S = 0.3
# The exit code of a program ended by Ctrl-C.
_INTERRUPTED = 130
_PLAY_MONEY = "Everything is play money, on 127.0.0.1 only. Nothing here has real value."


def run_demo(
    *,
    once: bool,
    port: int,
    rpc_port: int,
    output: Path,
    open_page: bool = False,
    screen: Screen | None = None,
    picture_format: str = "png",
) -> int:
    """Make the purchases, then serve until Ctrl-C unless `once`, and return the exit code.

    `open_page` opens the gateway's page in the browser as soon as it can sell there.
    """
    screen = screen or Screen()
    end_on_signals()
    with tempfile.TemporaryDirectory(prefix="gateway-demo-", ignore_cleanup_errors=True) as folder:
        try:
            place = _prepare(port, rpc_port, output, Path(folder))
            _introduce(screen, place)
            with _run_children(place) as (chain, gateway):
                opened = place.base_url if open_page else None
                _purchase(screen, place, (chain, gateway), picture_format, opened)
                if not once:
                    _serve(screen, place, (chain, gateway))
        except DemoError as error:
            screen.fail(str(error), error.log)
            return 1
        except KeyboardInterrupt:
            return _INTERRUPTED
    _print_farewell(screen, once=once)
    return 0


def end_on_signals() -> None:
    """Let SIGTERM and a closed terminal end this process as Ctrl-C does."""
    for name in ("SIGTERM", "SIGHUP"):
        # Windows has no SIGHUP.
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)


def _prepare(port: int, rpc_port: int, output: Path, folder: Path) -> Place:
    """Check py-evm, the output folder and the ports; raises `DemoError`."""
    if find_spec("eth") is None:
        raise DemoError("The embedded chain needs py-evm: pip install 'generation-gateway[demo]'")
    try:
        output.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=output).close()
    except OSError as error:
        raise DemoError(
            f"Nothing can be written to {output} ({error.strerror}); choose another folder: "
            "gateway demo --output FOLDER"
        ) from None
    gateway_port = choose_port(port, "--port")
    chain_port = choose_port(rpc_port, "--rpc-port", taken=gateway_port)
    return Place(port=gateway_port, rpc_port=chain_port, output=output, folder=folder)


def _introduce(screen: Screen, place: Place) -> None:
    screen.part("Generation Gateway", VERSION)
    screen.print("Four purchases over HTTP, with real signatures.")
    screen.print(_PLAY_MONEY, style=NOTABLE)
    screen.print(f"Shop page, once the gateway runs: {place.base_url}/")
    ignored = ignored_settings()
    if ignored:
        screen.print(f"The demo ignores {', '.join(ignored)}.")


@contextmanager
def _run_children(place: Place) -> Iterator[tuple[Child, Child]]:
    """Start chain and gateway at the same time; at the end stop the gateway first."""
    with ExitStack() as stack:
        chain = Child.start("chain", ["--port", str(place.rpc_port)], place.folder)
        stack.callback(chain.stop)
        gateway = Child.start("gateway", ["serve"], place.folder, **place.settings)
        stack.callback(gateway.stop)
        yield chain, gateway


def _purchase(
    screen: Screen,
    place: Place,
    children: tuple[Child, Child],
    picture_format: str,
    opened: str | None,
) -> None:
    """Make the purchases; raises `DemoError` with the log of the failed process.

    `opened` is the URL to open in the browser before the first purchase.
    """
    chain, gateway = children
    try:
        with ExitStack() as stack:
            screen.part("Start", "an embedded chain that mimics Base, and a gateway on it")
            with screen.step("Start the chain") as step:
                # The chain starts during this import, which takes seconds.
                from gateway_demo.tour.tour import Tour  # noqa: PLC0415

                tour = stack.enter_context(Tour.open(screen, place, picture_format))
                tour.await_chain(chain, step)
            tour.begin(gateway)
            if opened is not None and not webbrowser.open(opened):
                screen.print(f"No browser could be opened here: open {opened}/ yourself.")
            tour.buy()
            tour.show_balances()
    except (DemoError, OSError) as error:
        for child in children:
            child.check()
        raise DemoError(str(error), log=gateway.tail()) from error


def _serve(screen: Screen, place: Place, children: tuple[Child, Child]) -> None:
    """Keep serving until Ctrl-C; raises `DemoError` if a process exits."""
    screen.part("Your turn", "chain and gateway run until Ctrl-C")
    screen.lines(place.invitation())
    try:
        with screen.waiting("Serving. Ctrl-C stops it."):
            while True:
                for child in children:
                    child.check()
                time.sleep(_WATCH_S)
    except KeyboardInterrupt:
        return


def _print_farewell(screen: Screen, *, once: bool) -> None:
    screen.print("")
    if once:
        screen.print("Without --once the demo keeps running, so that you can buy too.")
    screen.print("That was play money, on 127.0.0.1 only.", style=NOTABLE)
    screen.print("Next, with your own settings and play money: gateway serve --play.")
    screen.print("docs/go-live.md leads from there to real money.")
