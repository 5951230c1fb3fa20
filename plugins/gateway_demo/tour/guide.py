"""The guided demo: an embedded chain, a gateway on it, and purchases with play money."""

import signal
import tempfile
import time
import webbrowser
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import attrs

import gateway_pictures
import gateway_speech
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
            with ExitStack() as stack:
                children = _Children(place, stack)
                opened = place.base_url if open_page else None
                _purchase(screen, place, children, picture_format, opened)
                if not once:
                    _serve(screen, place, children)
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
    count = "Four" if gateway_pictures.why_off() or gateway_speech.why_off() else "Eight"
    screen.print(f"{count} purchases over HTTP, with real signatures.")
    screen.print(_PLAY_MONEY, style=NOTABLE)
    screen.print(f"Shop page, once the gateway runs: {place.base_url}/")
    ignored = ignored_settings()
    if ignored:
        screen.print(f"The demo ignores {', '.join(ignored)}.")


@attrs.frozen
class _Children:
    """The processes of the demo, in the order of their start; the last one stops first."""

    place: Place
    _stack: ExitStack
    running: list[Child] = attrs.field(factory=list, init=False)

    def start_chain(self) -> Child:
        """Start the chain."""
        return self._start("chain", self.place.chain_options)

    def start_gateway(self) -> Child:
        """Start the gateway."""
        return self._start("gateway", ["serve"], **self.place.settings)

    def _start(self, name: str, arguments: list[str], **settings: str) -> Child:
        child = Child.start(name, arguments, self.place.folder, **settings)
        self._stack.callback(child.stop)
        self.running.append(child)
        return child

    def check(self) -> None:
        """Raise `DemoError` if one has exited."""
        for child in self.running:
            child.check()


def _purchase(
    screen: Screen,
    place: Place,
    children: _Children,
    picture_format: str,
    opened: str | None,
) -> None:
    """Make the purchases; raises `DemoError` with the log of the failed process.

    `opened` is the URL to open in the browser before the first purchase.
    """
    try:
        with ExitStack() as stack:
            screen.part("Start", "an embedded chain that mimics Base Sepolia, and a gateway on it")
            with screen.step("Start the chain") as step:
                chain = children.start_chain()
                # The chain starts during this import, which takes seconds.
                from gateway_demo.tour.tour import Tour  # noqa: PLC0415

                tour = stack.enter_context(Tour.open(screen, place, picture_format))
                tour.await_chain(chain, step)
            tour.begin(children.start_gateway)
            if opened is not None and not webbrowser.open(opened):
                screen.print(f"No browser could be opened here: open {opened}/ yourself.")
            tour.buy()
            tour.show_balances()
    except (DemoError, OSError) as error:
        children.check()
        raise DemoError(str(error), log=children.running[-1].tail()) from error


def _serve(screen: Screen, place: Place, children: _Children) -> None:
    """Keep serving until Ctrl-C; raises `DemoError` if a process exits."""
    screen.part("Your turn", "chain and gateway run until Ctrl-C")
    screen.lines(place.invitation())
    try:
        with screen.waiting("Serving. Ctrl-C stops it."):
            while True:
                children.check()
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
