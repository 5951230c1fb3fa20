"""The offers in every history, and the parts of the gateway that are unrelated to money."""

import functools
import random
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from gateway import Endpoint, Result, Settings, hookimpl
from gateway.catalog.catalog import Catalog
from gateway.chain.signer import address_of
from gateway.contracts import Clock, StoredFile
from gateway.domain import StoredOutput, StoredResult
from gateway.plugins.manager import PluginManager
from gateway_facilitator_settler.settler import FacilitatorSettler
from tests.proof.simulation.bank import Bank
from tests.proof.simulation.relay import RelayClient
from tests.proof.simulation.vendor import DiceProvider
from tests.proof.simulation.voucher_method import VoucherMethod

WALLET = "0x7Cf1A6bD3Fb7A9c1A5e2A3F9c2dB2f3A4b5C6d7E"
PRICE_UNITS = 20_000
SLUG = "picture"
_BATCH_SHARE = 0.4  # of the histories whose gateway has keys of its own
PRICES = {SLUG: PRICE_UNITS, "drawing": 30_000}  # drawings are sold where vouchers are taken
_SETTLEMENT_KEY = "0x" + "5e" * 31 + "5f"
_OTHER_KEY = "0x" + "6e" * 31 + "6f"
_REFUND_KEY = "0x" + "4e" * 31 + "4f"
SIGNER = address_of(bytes.fromhex(_SETTLEMENT_KEY[2:]))
REFUNDER = address_of(bytes.fromhex(_REFUND_KEY[2:]))


@attrs.frozen
class Terms:
    """The operator's settings in a history."""

    settlement: str  # `local`, `keys`: two of them, or `relay`: a facilitator with another client
    refunds: str  # `manual` or `automatic`
    refund_cap: str
    refund_units: int  # what the refund key holds
    batch: int = 1  # the most payments in one transaction

    @classmethod
    def draw(cls, dice: random.Random) -> "Terms":
        refunds = dice.choice(("manual", "automatic"))
        return cls(
            settlement=dice.choice(("local", "keys", "relay", "relay")),
            refunds=refunds,
            refund_cap=dice.choice(("10", "10", "0.02")) if refunds == "automatic" else "10",
            refund_units=dice.choice((0, PRICE_UNITS, 10**9, 10**9)),
        )

    def with_batches(self, seed: int) -> "Terms":
        """Make some shops settle in batches, drawn by their own random generator."""
        dice = random.Random(f"batch {seed}")
        has_batches = dice.random() < _BATCH_SHARE and self.settlement != "relay"
        return attrs.evolve(self, batch=dice.choice((2, 3, 10))) if has_batches else self


@functools.lru_cache(maxsize=64)
def settings(settlement: str, refunds: str, refund_cap: str, batch: int) -> Settings:
    return Settings(
        base_url="http://gateway.test",
        wallet=WALLET,
        data_dir=Path(tempfile.gettempdir()),
        settlement="local" if settlement == "keys" else settlement,
        settlement_key="" if settlement == "keys" else _SETTLEMENT_KEY,
        settlement_keys=f"{_SETTLEMENT_KEY},{_OTHER_KEY}" if settlement == "keys" else "",
        settlement_batch=batch,
        refunds=refunds,
        refund_key=_REFUND_KEY if refunds == "automatic" else "",
        refund_daily_cap=refund_cap,
        plugin_values={"admin_password": "not needed"},
        min_free_disk_mb=0,
        failed_gas_per_hour=1.0,  # ETH; so that each payer's own bar is what stops a wallet
    )


def settings_of(terms: Terms) -> Settings:
    return settings(terms.settlement, terms.refunds, terms.refund_cap, terms.batch)


@functools.lru_cache(maxsize=1)
def plugins() -> PluginManager:
    """Load the bundled plugins and the simulation's own, once per process."""
    return PluginManager([MarketPlugin()])


def catalog(now: Clock, bank: Bank | None) -> Catalog:
    """Return the catalogue of one process; it counts work in progress, so each has its own."""
    made, provider = Catalog({}, now=now), DiceProvider()
    for slug in PRICES if bank is not None else (SLUG,):
        made.register(_endpoint(slug), provider, "market")
    return made


def _endpoint(slug: str) -> Endpoint:
    return Endpoint(
        slug=slug,
        title="A picture",
        description="Nothing to see.",
        model="dice",
        provider="dice",
        capability="document-parsing",
        price_units=PRICES[slug],
    )


class MarketPlugin:
    """Sells one picture, offers settlement through a relay, and takes vouchers in some shops."""

    __name__ = "simulated-market"

    @hookimpl
    def register_endpoints(self, register: Any, settings: Settings) -> None:
        register(_endpoint(SLUG), DiceProvider())

    @hookimpl
    def register_settlers(self, register: Any, context: Any) -> None:
        register("relay", lambda: FacilitatorSettler(context, RelayClient(context.chain.life)))

    @hookimpl
    def register_payment_method(self, register: Any, context: Any) -> None:
        life = context.chain.life
        if life.ground.bank is not None:
            register(VoucherMethod(life, life.ground.bank))


@attrs.frozen
class NoOutputs:
    """Keeps text only, in the task itself."""

    async def save(self, task_id: str, result: Result) -> StoredResult:
        return StoredResult(text=result.text)

    async def written_before(self, before: float) -> AsyncIterator[list[StoredFile]]:
        for batch in ():
            yield batch

    async def delete(self, outputs: Sequence[StoredOutput]) -> None:
        """Nothing was written."""
