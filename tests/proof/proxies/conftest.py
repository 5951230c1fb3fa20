"""The proxies of docs/deploy-server.md, the real programs, in front of a real `gateway serve`.

A test skips where its proxy is not installed (Debian: `apt-get install nginx caddy haproxy`).
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator

import pytest

from gateway_demo.chain import PlayChain
from tests.conftest import new_account
from tests.proof.process.gateway_process import Gateway
from tests.proof.proxies.proxy import NAMES, Proxy

# A name of 60 characters: heads of prices are about as long as they get.
BASE_URL = "https://" + "gateway-with-a-long-name.".ljust(52, "x") + ".example"
# So many unpaid transfers may one address try.
DIRECT_LIMIT = 4


@pytest.fixture(scope="session")
def shop() -> Iterator[PlayChain]:
    """The chain of all gateways here."""
    with PlayChain() as chain:
        yield chain


@pytest.fixture(scope="session")
def serve(tmp_path_factory, shop) -> Iterator[Callable[[str], Gateway]]:
    """Return a running gateway on an HTTP server; the first test that asks starts it."""
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
    """Return a running proxy in front of the gateway on Hypercorn, by the page's block as it is."""
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


@pytest.fixture(params=NAMES)
def name(request) -> str:
    """Run a test with each proxy that is installed."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.fixture
def proxy(proxied, name) -> Proxy:
    return proxied(name)


@pytest.fixture
def gateway(serve) -> Iterator[Gateway]:
    """The gateway behind `proxy`: a test neither changes nor ends it."""
    with serve("hypercorn").lent() as gateway:
        yield gateway
