"""The fuzzed gateway: its first RPC endpoint lies on demand, its second is truthful."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from eth_account import Account

from gateway import Settings
from gateway.chain.transport import KeepAliveProvider
from gateway_demo.chain import PlayChain
from tests.conftest import WALLET, Clock, ScriptedProvider, running
from tests.proof.fuzz.asks import Ask
from tests.proof.fuzz.parsers import scripted_chain
from tests.proof.fuzz.rpc_answers import BLOCK_HASH

_NOW = 4_000_000_000 - 300  # the payments of `asks` are in their window
_MANY = "1000000000/1s"


class Truthful(KeepAliveProvider):
    """web3's provider with the embedded chain behind it, without the wire."""

    def __init__(self, chain: PlayChain) -> None:
        super().__init__("http://truth.test")
        self._chain = chain

    async def _post(self, data: bytes) -> bytes:
        return self._chain.rpc.answer(data)


class Liar(Truthful):
    """Returns any receipt that a test has set, and a block for any number."""

    def __init__(self, chain: PlayChain) -> None:
        super().__init__(chain)
        self.receipt = b""

    async def _post(self, data: bytes) -> bytes:
        request = json.loads(data)
        if request["method"] == "eth_getTransactionReceipt":
            return self.receipt
        if request["method"] == "eth_getTransactionByHash":
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": {}}
            return json.dumps(answer).encode()
        number = request["params"][0] if request["method"] == "eth_getBlockByNumber" else ""
        if number.startswith("0x"):
            answer = json.loads(await super()._post(json.dumps(request | _HEAD).encode()))
            answer["result"] |= {"number": number, "hash": BLOCK_HASH}
            return json.dumps(answer).encode()
        return await super()._post(data)


_HEAD = {"method": "eth_getBlockByNumber", "params": ["latest", False]}


class Site:
    """The app as an HTTP server calls it, for synchronous callers such as Hypothesis."""

    def __init__(self, folder: Path) -> None:
        self._stack = contextlib.AsyncExitStack()
        self._runner = asyncio.Runner()
        self.chain = PlayChain(clock=lambda: _NOW)
        self.key = Account.from_key(b"\x09" * 32)
        self.chain.fund(self.key.address, usdc_units=0)
        self._runner.run(self._open(folder))

    async def _open(self, folder: Path) -> None:
        clock = Clock()
        clock.frozen_at = _NOW
        settings = Settings(
            base_url="http://gateway.test",
            rpc_urls=("http://127.0.0.1:8545",),
            wallet=WALLET,
            data_dir=folder,
            settlement_key=self.key.key.hex(),
            plugin_values={"admin_password": "correct horse"},
            limit_x402=_MANY,
            limit_direct=_MANY,
            limit_task=_MANY,
            tx_patience=0.0,
            min_free_disk_mb=0,
        )
        self.liar = Liar(self.chain)
        self.liar.receipt = b"not now"
        chain = await scripted_chain(self.liar, Truthful(self.chain))
        self.gateway = await self._stack.enter_async_context(
            running(settings, ScriptedProvider(), chain=chain, now=clock)
        )
        await self.gateway.services.lifecycle.warmed.wait()
        # The loop is stopped between two inputs, for which the watchdog would blame a plugin and in
        # the end take it off sale.
        await self.gateway.services.watchdog.stop()

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()
        self.chain.stop()

    def ask(self, ask: Ask) -> str:
        """Send a request; returns its status once the whole response is checked."""
        return self._runner.run(self._ask(ask))

    async def _ask(self, ask: Ask) -> str:
        status, headers, data = await _call(self.gateway.app, ask)
        assert status < 500, (status, data)
        if (
            status < 400
            or ask.method == "HEAD"
            or headers.get("content-type", "")[:9] == "text/html"
        ):
            return str(status)
        return f"{status} {_checked_error(status, headers, data)}"

    def charged(self) -> tuple:
        """Return everything that changes with a payment: rows, transactions, money."""
        return self._runner.run(self._charged())

    async def _charged(self) -> tuple:
        rows = await self.gateway.services.store.counts()
        sent = self.chain.rpc.result("eth_getTransactionCount", self.key.address, "pending")
        return rows, sent, self.chain.usdc_balance(WALLET)


async def _call(app, ask: Ask) -> tuple[int, dict[str, str], bytes]:
    """Call the app by ASGI with a scope as hypercorn makes it."""
    raw, _, query = ask.path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.1"},
        "http_version": "1.1",
        "method": ask.method,
        "scheme": "http",
        "path": unquote(raw),
        "raw_path": raw.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": [(name.lower().encode(), text.encode("latin-1")) for name, text in ask.headers],
        "client": ("203.0.113.7", 4711),
        "server": ("127.0.0.1", 8080),
        "extensions": {},
    }
    incoming = asyncio.Queue()
    incoming.put_nowait({"type": "http.request", "body": ask.body, "more_body": False})
    sent = []

    async def send(message) -> None:
        sent.append(message)

    await app(scope, incoming.get, send)
    headers = {name.decode().lower(): text.decode("latin-1") for name, text in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(part.get("body", b"") for part in sent[1:])


def _checked_error(status: int, headers: dict[str, str], data: bytes) -> str:
    """Check the body of an error (spec §2.6), or of a 402 (spec §2.4); return its code."""
    assert headers["content-type"] == "application/json", (headers, data)
    body = json.loads(data)
    of_402 = {"x402Version", "error", "accepts", "details", "charged"}
    allowed = of_402 if status == 402 else {"error", "code", "details", "charged"}
    assert set(body) <= allowed
    assert isinstance(body["error"], str)
    assert body["error"]
    if status != 402:
        return body["code"]
    assert sum(len(name) + len(text) for name, text in headers.items()) < 8192
    return body["error"].partition(":")[0].replace("invalid_exact_evm_", "…")


@contextlib.contextmanager
def opened() -> Iterator[Site]:
    """Yield a site with its own files."""
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        try:
            yield site
        finally:
            site.close()
