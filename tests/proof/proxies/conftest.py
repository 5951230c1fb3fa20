"""The real proxies of docs/deploy-server.md, in front of a real `gateway serve`.

A test is skipped if its proxy is not installed (Debian: `apt-get install nginx caddy haproxy`).
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator

import pytest

from gateway_demo.chain import PlayChain
from tests.conftest import new_account
from tests.proof.process.gateway_process import Gateway
from tests.proof.proxies.proxy import NAMES, Proxy

# A host name of 60 characters: the heads of 402s are then about as long as possible.
BASE_URL = "https://" + "gateway-with-a-long-name.".ljust(52, "x") + ".example"
# The limit of unpaid transfers per address.
DIRECT_LIMIT = 4


@pytest.fixture(scope="session")
def shop() -> Iterator[PlayChain]:
    """The chain of all gateways here."""
    with PlayChain() as chain:
        yield chain


@pytest.fixture(scope="session")
def serve(tmp_path_factory, shop) -> Iterator[Callable[[str], Gateway]]:
    """Return a running gateway on an HTTP server; the first use starts it."""
    kept: dict[str, Gateway] = {}
    with contextlib.ExitStack() as stack:

        def serve(server: str) -> Gateway:
            if server not in kept:
                account = new_account()
                shop.fund(account.address, eth_wei=10**18, usdc_units=0)
                gateway = Gateway(
                    tmp_path_factory.mktemp(server),
                    shop,
                    account.key.hex(),
                    GATEWAY_SERVER=server,
                    GATEWAY_BASE_URL=BASE_URL,
                    GATEWAY_CLIENT_IP_HEADER="X-Real-IP",
                    GATEWAY_LIMIT_DIRECT=f"{DIRECT_LIMIT}/600s",
                )
                stack.callback(lambda: gateway.process and gateway.kill())
                gateway.start()
                kept[server] = gateway
            return kept[server]

        yield serve


@pytest.fixture(scope="session")
def proxied(serve) -> Iterator[Callable[..., Proxy]]:
    """Return a running proxy with the page's configuration, before the gateway on Hypercorn."""
    kept: dict[str, Proxy] = {}
    with contextlib.ExitStack() as stack:

        def proxied(name: str) -> Proxy:
            if name not in kept:
                proxy = Proxy(name, serve("hypercorn").port)
                stack.callback(proxy.stop)
                proxy.start()
                kept[name] = proxy
            return kept[name]

        yield proxied


# `make test` runs one of them.
@pytest.fixture(
    params=[NAMES[0], *(pytest.param(name, marks=pytest.mark.full) for name in NAMES[1:])]
)
def name(request) -> str:
    """Run a test with each installed proxy."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.fixture
def proxy(proxied, name) -> Proxy:
    return proxied(name)


@pytest.fixture
def gateway(serve) -> Iterator[Gateway]:
    """The gateway behind `proxy`; a test must not change or stop it."""
    with serve("hypercorn").lent() as gateway:
        yield gateway
