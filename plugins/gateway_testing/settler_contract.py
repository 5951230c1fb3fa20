"""Tests that every settler must pass while its service is down: subclass `SettlerContract`.

    class TestMine(SettlerContract):
        plugin = gateway_mine
        name = "mine"
        values = {"mine_url": "http://127.0.0.1:9"}  # a closed port

Only a chain can show that a settler transfers exactly once: see tests/gateway/settlement.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
import pytest_asyncio

from gateway.contracts import PluginContext, Settler
from gateway.domain import PaymentState
from gateway.errors import ChainUnavailable, ExecutionError, SettingsError
from gateway.store import SqliteStore
from gateway_testing.facts import known, reserved
from gateway_testing.fakes.chain import FakeChain, call_hook, context_of

_OPEN = (PaymentState.RESERVED, PaymentState.SETTLING)


class SettlerContract:
    """A settler, a store on disk, and a chain that does not respond."""

    plugin: Any
    """The module with the hook `register_settlers`."""

    name: ClassVar[str] = ""
    """The value of `GATEWAY_SETTLEMENT` that selects it."""

    values: ClassVar[Mapping[str, Any]] = {}
    """The settings that the settler needs, by their names in gateway.toml."""

    @pytest_asyncio.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqliteStore]:
        async with SqliteStore(tmp_path / "gateway.db") as store:
            yield store

    @pytest.fixture
    def context(self, store: SqliteStore, tmp_path: Path) -> PluginContext:
        silent = context_of(FakeChain(is_silent=True), tmp_path, self.values)
        return attrs.evolve(silent, journal=store)

    @pytest_asyncio.fixture
    async def settler(self, context: PluginContext) -> AsyncIterator[Settler]:
        settler = self._offered(context)[self.name]()
        yield settler
        await settler.close()

    @pytest.mark.asyncio
    async def test_without_its_settings_it_is_offered_and_says_what_is_missing(
        self, tmp_path: Path
    ) -> None:
        offered = self._offered(context_of(FakeChain(), tmp_path, {}))
        assert self.name in offered, (
            f"`register_settlers` offers {', '.join(offered) or 'nothing'}, not {self.name!r}. "
            "Call `register(name, factory)` whatever is set; only the factory may raise "
            "SettingsError."
        )
        with pytest.raises(SettingsError, match="GATEWAY_"):
            offered[self.name]()

    @pytest.mark.asyncio
    async def test_nothing_is_sold_while_nobody_answers(self, settler: Settler) -> None:
        with pytest.raises((ExecutionError, ChainUnavailable)):
            await settler.check_ready()

    @pytest.mark.asyncio
    async def test_a_payment_stays_open_whatever_fails(
        self, settler: Settler, store: SqliteStore
    ) -> None:
        task = await reserved(store)
        for _ in range(2):
            payment = (await known(store, task.id)).payment
            await _await_unless_silent(settler.submit(payment))
            await _await_unless_silent(settler.tend())
        state = (await known(store, task.id)).payment.state
        assert state in _OPEN, (
            f"It is {state.value}, but only the chain decides how a payment ends."
        )

    @pytest.mark.asyncio
    async def test_it_tends_and_closes_with_nothing_to_do(self, settler: Settler) -> None:
        await _await_unless_silent(settler.tend())
        await settler.close()
        await settler.close()

    def _offered(self, context: PluginContext) -> dict[str, Callable[[], Settler]]:
        """Return the plugin's settlers by name, registered as in the gateway."""
        offered: dict[str, Callable[[], Settler]] = {}
        call_hook(self.plugin, "register_settlers", offered.__setitem__, context)
        return offered


async def _await_unless_silent(doing: Any) -> None:
    """Await a settler's call that may raise only `ChainUnavailable`."""
    try:
        await doing
    except ChainUnavailable:
        return
