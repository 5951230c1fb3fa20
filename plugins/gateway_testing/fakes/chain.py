"""A chain for tests of payment plugins, with a few transactions and blocks."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

import attrs
import pluggy

from gateway.contracts import Chain, PluginContext, Quote, SettlementJournal
from gateway.domain import Authorization, Block, Endpoint, Log, Receipt
from gateway.domain.eip3009 import BASE, TRANSFER_TOPIC, topic, transfer_calldata, word
from gateway.errors import ChainUnavailable
from gateway.plugins import hookspecs
from gateway.settings import Settings

NOW = 1_800_000_000
WALLET = "0x" + "b2" * 20
PAYER = "0x" + "a1" * 20
TX_HASH = "0x" + "7a" * 32
# The number of the newest block.
HEAD = 100_000
# As on Base, so that five blocks share a time.
_BLOCKS_A_SECOND = 5


@attrs.define
class FakeChain:
    """Returns the receipts that a test added, and counts the calls."""

    receipts: dict[str, Receipt] = attrs.field(factory=dict)
    is_silent: bool = False
    asked: int = 0
    accepts_calls: bool = False
    """Whether every call succeeds."""
    are_plain: bool = False
    """Whether accounts have no code."""
    called: list[bytes] = attrs.field(factory=list)
    """The data of the calls that succeeded."""

    async def receipt(self, tx_hash: str) -> Receipt | None:
        """Return a receipt that a test added."""
        self._ask()
        return self.receipts.get(tx_hash)

    async def knows_transaction(self, tx_hash: str) -> bool:
        """Return whether a test added it."""
        self._ask()
        return tx_hash in self.receipts

    async def newest_head(self) -> Block:
        """Return the newest block."""
        return await self.block_at(HEAD)

    async def renew(self) -> None:
        """Do nothing: it has no connections."""

    def server_time(self) -> float | None:
        """Return None: it is not known."""
        return None

    async def head(self) -> Block:
        """Return the newest block."""
        return await self.block_at(HEAD)

    async def safe_head(self) -> Block:
        """Return the newest block."""
        return await self.block_at(HEAD)

    async def block_at(self, number: int) -> Block:
        """Return a block by its number."""
        self._ask()
        return Block(number=number, hash=block_hash(number), timestamp=time_of(number))

    async def block(self, block_hash: str) -> Block:
        """Return a block by its hash."""
        return await self.block_at(int(block_hash, 16))

    async def call(self, data: bytes, **_: Any) -> bytes:
        """Record a call that succeeds, if calls do."""
        self._ask_if_accepting()
        self.called.append(data)
        return b""

    async def simulate_plain(self, authorization: Authorization) -> bool:
        """Record a plain account's transfer that succeeds, if calls do; else return False."""
        self.asked += 1
        passes = self.are_plain and self.accepts_calls and not self.is_silent
        if passes:
            self.called.append(transfer_calldata(authorization))
        return passes

    async def code(self, _: str, **__: Any) -> bytes:
        """Return code unless accounts are plain, if calls succeed."""
        self._ask_if_accepting()
        return b"" if self.are_plain else b"\1"

    def _ask_if_accepting(self) -> None:
        self._ask()
        if not self.accepts_calls:
            raise ChainUnavailable("No RPC endpoint answers.")

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return a call that raises `ChainUnavailable`, for every other method of a chain."""
        if name.startswith("__"):
            raise AttributeError(name)

        async def unanswered(*_: Any, **__: Any) -> Any:
            self._ask()
            raise ChainUnavailable("No RPC endpoint answers.")

        return unanswered

    def _ask(self) -> None:
        self.asked += 1
        if self.is_silent:
            raise ChainUnavailable("No RPC endpoint answers.")


def block_hash(number: int) -> str:
    """Return the hash of a block."""
    return f"0x{number:064x}"


def time_of(number: int) -> int:
    """Return the time of a block, in whole Unix seconds."""
    return NOW + (number - HEAD) // _BLOCKS_A_SECOND


def context_of(chain: FakeChain, folder: Path, values: Mapping[str, Any]) -> PluginContext:
    """Return a payment plugin's context; `values` are settings by their gateway.toml names."""
    return PluginContext(
        settings=settings_of({"tx_patience": 0.0, **values}, wallet=WALLET, data_dir=folder),
        chain=cast(Chain, chain),
        journal=cast(SettlementJournal, None),  # verifiers do not write
        now=lambda: float(NOW),
        derive_secret=lambda purpose: hashlib.sha256(purpose.encode()).hexdigest(),
    )


def quote_of_picture() -> Quote:
    """Return a quote for a picture at 0.02 USDC."""
    endpoint = Endpoint(
        slug="picture",
        title="A picture",
        description="A picture.",
        model="pixel",
        provider="kit",
        capability="text-to-image",
        price_units=20_000,
    )
    return Quote(
        endpoint=endpoint,
        price_units=endpoint.price_units,
        wallet=WALLET,
        network=BASE,
        resource_url="https://gateway.example/api/x402/picture",
    )


def call_hook(plugin: Any, hook: str, register: Any, context: PluginContext) -> None:
    """Call a hook of one plugin as the gateway does."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin)
    getattr(manager.hook, hook)(register=register, context=context)


def registered(plugin: Any, hook: str, context: PluginContext) -> Any:
    """Return the one object that a plugin registers."""
    found: list[Any] = []
    call_hook(plugin, hook, found.append, context)
    if len(found) != 1:
        raise AssertionError(
            f"`{hook}` of {plugin.__name__} registered {len(found)} verifiers, not one: call "
            "`register(YourVerifier(…))` once, in a function marked `@gateway.hookimpl`."
        )
    return found[0]


def transfer_log(
    index: int = 0, *, to: str = WALLET, units: int = 20_000, token: str = BASE.token
) -> Log:
    """Return the log of one token transfer."""
    return Log(
        address=token,
        topics=(TRANSFER_TOPIC, topic(PAYER), topic(to)),
        data=word(units),
        index=index,
    )


def mined(*logs: Log, succeeded: bool = True, at: int = HEAD) -> Receipt:
    """Return the receipt of a mined transaction."""
    return Receipt(
        tx_hash=TX_HASH,
        succeeded=succeeded,
        block=Block(number=at, hash=block_hash(at), timestamp=time_of(at)),
        logs=logs,
    )


def settings_of(values: Mapping[str, Any], *, wallet: str, data_dir: Path) -> Settings:
    """Return settings; `values` are the gateway's and the plugins', by their gateway.toml names."""
    return Settings(wallet=wallet, data_dir=data_dir).changed(**values)
