"""A gateway behind a fault proxy, for many cases in turn: each pays once, and is checked."""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs
from eth_account import Account

from gateway import Settings
from gateway.chain.client import Web3Chain
from gateway.chain.retries import Cooldown, RetryTiming
from gateway_demo.chain import PlayChain
from gateway_facilitator_settler.settler import FacilitatorTiming
from tests.conftest import WALLET, Payer, ScriptedProvider, running
from tests.proof.faults.proxy import FaultProxy
from tests.waits import FAST, Waits, started_with

CALM_S = 10.0  # no time-out, however loaded the machine
_MANY = "1000000/1s"
# A tenth of production's times or less; six timeouts fit into a drive, as in production.
_FAST = Waits(
    outcome_s=0.2,
    settlement=FAST,
)
_TIMING = RetryTiming(first_pause_s=0.005, longest_pause_s=0.005)


@contextlib.contextmanager
def patience(facilitator: FacilitatorTiming | None = None) -> Iterator[None]:
    """Shorten the gateway's pauses for all scenes; a scene that ends early changes nothing."""
    waits = attrs.evolve(_FAST, facilitator=facilitator or FacilitatorTiming())
    with started_with(waits):
        yield


@attrs.frozen(kw_only=True)
class Case:
    """One cell: a call, a fault, and a kind of payment."""

    run: str  # of `cases.RUNS`
    call: str
    fault: str


class Scene:
    """One gateway; its first RPC endpoint is a fault proxy, its second, if any, works."""

    def __init__(self, *, endpoints: int, **changes) -> None:
        self._stack = stack = contextlib.AsyncExitStack()
        self._runner = asyncio.Runner()
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.chain = stack.enter_context(PlayChain())
        self.proxies = [FaultProxy(self.chain) for _ in range(endpoints)]
        for proxy in self.proxies:
            proxy.start()
            self._stack.callback(proxy.stop)
        self.payer = Payer(self.chain)
        self.provider = ScriptedProvider()
        self.key = Account.create()
        self.chain.fund(self.key.address, usdc_units=0)
        self._runner.run(self._open(Path(folder), changes))

    async def _open(self, folder: Path, changes: dict) -> None:
        settings = Settings(
            base_url="http://gateway.test",
            wallet=WALLET,
            rpc_urls=tuple(proxy.url for proxy in self.proxies),
            rpc_timeout=CALM_S,
            data_dir=folder,
            settlement_key=self.key.key.hex(),
            plugin_values={"admin_password": "correct horse"},
            limit_x402=_MANY,
            limit_direct=_MANY,
            limit_task=_MANY,
            tx_patience=0.0,
            min_free_disk_mb=0,
        )
        settings = attrs.evolve(settings, **changes)
        chain = Web3Chain(settings, timing=_TIMING)
        self.gateway = await self._stack.enter_async_context(
            running(settings, self.provider, chain=chain)
        )
        # Disable sharing, so that each purchase meets its own fault.
        chain._fees.ttl_s = self.gateway.services.payments._recent_head.ttl_s = 0.0
        await self.gateway.services.lifecycle.warmed.wait()
        # The loop is stopped between two runs, for which the watchdog would blame a plugin.
        await self.gateway.services.watchdog.stop()

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def run(self, work):
        """Run a coroutine in the gateway's loop."""
        return self._runner.run(work)

    def forget_checks(self, *, timeout_s: float) -> None:
        """Let the gateway check its endpoints and gas again, as after a start.

        `timeout_s` is the first endpoint's: short if it hangs, long if only the machine may be
        slow.
        """
        self.gateway.services.chain._simulations._rests.clear()
        rpc = self.gateway.services.chain._rpc
        first, *others = [
            attrs.evolve(endpoint, checks_passed=0, cooldown=Cooldown(_TIMING))
            for endpoint in rpc._endpoints
        ]
        rpc._endpoints = [attrs.evolve(first, timeout_s=timeout_s), *others]
        for signer in self.gateway.services.settlements.settler._keys._signers:
            signer._affordable_until = 0.0

    async def money(self) -> tuple:
        """Return everything that changes when a payment is taken:

        rows, transactions, the wallet.
        """
        counts = await self.gateway.services.store.counts()
        rows = {kind: sum(states.values()) for kind, states in counts.items()}
        return rows, self._sent(), self.chain.usdc_balance(WALLET)

    def _sent(self) -> str:
        return self.chain.rpc.result("eth_getTransactionCount", self.key.address, "pending")
