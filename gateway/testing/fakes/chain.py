"""A chain for tests of payment plugins: a few transactions, a few blocks, and else silence."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

import attrs
import pluggy

from gateway.contracts import Chain, PluginContext, SettlementJournal
from gateway.domain import Block, Log, Receipt
from gateway.domain.eip3009 import BASE, TRANSFER_TOPIC, topic, word
from gateway.errors import ChainUnavailable
from gateway.plugins import hookspecs
from gateway.testing.operator import settings_of

NOW = 1_800_000_000
WALLET = "0x" + "b2" * 20
PAYER = "0x" + "a1" * 20
TX_HASH = "0x" + "7a" * 32
HEAD = 1000  # the number of the newest block; they are two seconds apart
_BLOCK_S = 2


@attrs.define
class FakeChain:
    """Answers from what a test has put in; counts whatever is asked."""

    receipts: dict[str, Receipt] = attrs.field(factory=dict)
    is_silent: bool = False
    asked: int = 0

    async def receipt(self, tx_hash: str) -> Receipt | None:
        """Return a transaction that a test has put in."""
        self._ask()
        return self.receipts.get(tx_hash)

    async def knows_transaction(self, tx_hash: str) -> bool:
        """Return whether a test has put it in."""
        self._ask()
        return tx_hash in self.receipts

    async def newest_head(self) -> Block:
        """Return the newest block."""
        return await self.block_at(HEAD)

    async def head(self) -> Block:
        """Return the newest block."""
        return await self.block_at(HEAD)

    async def safe_head(self) -> Block:
        """Return the newest block, too."""
        return await self.block_at(HEAD)

    async def block_at(self, number: int) -> Block:
        """Return a block by its number."""
        self._ask()
        timestamp = NOW - (HEAD - number) * _BLOCK_S
        return Block(number=number, hash=block_hash(number), timestamp=timestamp)

    async def block(self, block_hash: str) -> Block:
        """Return a block by its hash."""
        return await self.block_at(int(block_hash, 16))

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return anything else that a chain can be asked: nobody answers."""
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


def context_of(chain: FakeChain, folder: Path, values: Mapping[str, Any]) -> PluginContext:
    """Return what a payment plugin is handed; `values` are settings, as gateway.toml names them."""
    return PluginContext(
        settings=settings_of({"tx_patience": 0.0, **values}, wallet=WALLET, data_dir=folder),
        chain=cast(Chain, chain),
        journal=cast(SettlementJournal, None),  # verifiers write nothing
        now=lambda: float(NOW),
    )


def call_hook(plugin: Any, hook: str, register: Any, context: PluginContext) -> None:
    """Call a hook of one plugin, as the gateway calls it."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin)
    getattr(manager.hook, hook)(register=register, context=context)


def registered(plugin: Any, hook: str, context: PluginContext) -> Any:
    """Return the one thing that a plugin registers."""
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
    """Return the event of one transfer of tokens."""
    return Log(
        address=token,
        topics=(TRANSFER_TOPIC, topic(PAYER), topic(to)),
        data=word(units),
        index=index,
    )


def mined(*logs: Log, succeeded: bool = True, at: int = HEAD) -> Receipt:
    """Return a transaction that is in a block."""
    return Receipt(
        tx_hash=TX_HASH,
        succeeded=succeeded,
        block_number=at,
        block_hash=block_hash(at),
        logs=logs,
    )
