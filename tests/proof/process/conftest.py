"""Gateways in processes, for each HTTP server: a test's own, and shared running ones."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from gateway_demo.chain import PlayChain
from tests.conftest import new_account
from tests.proof.process.gateway_process import Gateway

# One second instead of the server's usual half minute.
_IDLE_1_S = "import gateway.web.server.connection_limits as limits; limits.IDLE_S = 1\n"
_BODY_1_S = "import gateway.web.application as application; application._BODY_S = 1\n"
# Code that shared gateways of a kind run at their start, before they import the server.
_PATCHES = {
    "patient": "",
    "impatient": _IDLE_1_S + _BODY_1_S,
    "fast": _BODY_1_S,
    # All requests go to Quart.
    "quart": _BODY_1_S + "application.FastPath = lambda app, *_: app.asgi_app\n",
}
# A password that is also a valid HTTP method.
PASSWORD = "PASSWORD-1234"
# The text is longer than the operating system's buffers for a client.
_BIG = """
from gateway import Endpoint, Result, Traits, hookimpl, usdc

class Big:
    name = "big"
    traits = Traits(idempotent_submit=True)

    async def submit(self, request, job):
        return Result(text="x" * 16_000_000)

@hookimpl
def register_endpoints(register, settings):
    register(
        Endpoint(slug="big", title="Big", description="Big.", model="big-1", provider="big",
                 capability="document-parsing", price_units=usdc("0.02")),
        Big(),
    )
"""


@pytest.fixture
def served(tmp_path, chain, key, http_server) -> Iterator[Gateway]:
    """A gateway for one test, which may start, change and stop it."""
    gateway = Gateway(tmp_path, chain, key, GATEWAY_SERVER=http_server)
    yield gateway
    if gateway.process is not None:
        gateway.kill()


@pytest.fixture(scope="session")
def _shared(tmp_path_factory) -> Iterator[Callable[[str, str], Gateway]]:
    """Return a running gateway by kind and HTTP server; the first use starts it."""
    kept: dict[tuple[str, str], Gateway] = {}
    with contextlib.ExitStack() as stack:
        chain = stack.enter_context(PlayChain())

        def running(kind: str, server: str) -> Gateway:
            name = kind, server
            if name not in kept or kept[name].process.poll() is not None:
                folder = tmp_path_factory.mktemp(f"{kind}-{server}")
                kept[name] = _made(kind, folder, chain, GATEWAY_SERVER=server)
                kept[name].start()
                stack.callback(kept[name].kill)
            return kept[name]

        yield running


def _made(kind: str, folder, chain: PlayChain, **variables: str) -> Gateway:
    account = new_account()
    chain.fund(account.address, eth_wei=10**18, usdc_units=0)
    # The responses of several gateways are compared, so they need the same name.
    variables |= {"GATEWAY_ADMIN_PASSWORD": PASSWORD, "GATEWAY_BASE_URL": "http://gateway.test"}
    gateway = Gateway(folder, chain, account.key.hex(), **variables)
    if _PATCHES[kind]:
        gateway.patch(_PATCHES[kind], before_imports=kind == "impatient")
    gateway.install("big_provider", _BIG)
    return gateway


@pytest.fixture
def gateway(_shared, http_server) -> Iterator[Gateway]:
    """A shared running gateway, which a test must not change or stop."""
    with _shared("patient", http_server).lent() as gateway:
        yield gateway


@pytest.fixture
def impatient(_shared, http_server) -> Iterator[Gateway]:
    """Like `gateway`, with one second instead of the usual half minute."""
    with _shared("impatient", http_server).lent() as gateway:
        yield gateway


@pytest.fixture
def both(_shared, http_server) -> Iterator[tuple[Gateway, Gateway]]:
    """A normal gateway, and one whose requests all go to Quart; both wait 1 s for a body."""
    fast, quart = _shared("fast", http_server), _shared("quart", http_server)
    with fast.lent(), quart.lent():
        yield fast, quart
