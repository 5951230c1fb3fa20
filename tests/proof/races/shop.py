"""A gateway on the embedded chain for the races, and the allowed results of a round."""

import collections
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
from eth_account import Account

from gateway import Settings
from gateway.domain.eip3009 import BASE, TRANSFER_TOPIC, topic
from gateway_demo.chain import PlayChain
from tests.conftest import WALLET, Payer, Running, ScriptedProvider, running

PRICE = 20_000


@attrs.frozen
class Answer:
    """The response to one request of a round."""

    status: int
    body: dict

    @property
    def outcome(self) -> str:
        return str(self.body.get("code") or self.status)


@attrs.frozen
class Purchase:
    """A paid request that can be repeated."""

    path: str
    body: dict
    headers: dict


@attrs.define
class Shop:
    """One app, one chain and one payer for all rounds."""

    gateway: Running
    chain: PlayChain
    provider: ScriptedProvider
    payer: Payer

    async def buy(self, header: str, prompt: str = "a boat", **headers: str) -> Answer:
        """Pay by x402."""
        headers["X-PAYMENT"] = header
        return await self.post("/api/x402/picture", {"prompt": prompt}, **headers)

    async def pay_directly(self, tx_hash: str, prompt: str = "a boat", **headers: str) -> Answer:
        """Pay by the hash of a transfer."""
        body = {"slug": "picture", "prompt": prompt, "txHash": tx_hash}
        return await self.post("/api/proxy-generate", body, **headers)

    def x402(self) -> Purchase:
        header = {"X-PAYMENT": self.payer.header()}
        return Purchase("/api/x402/picture", {"prompt": "a boat"}, header)

    def direct(self) -> Purchase:
        """Return a new purchase by a transfer, as a careful client sends it."""
        tx_hash = self.payer.transfer(PRICE)
        body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
        return Purchase("/api/proxy-generate", body, {"Idempotency-Key": tx_hash})

    async def ask(self, purchase: Purchase) -> Answer:
        """Send a purchase, for the first time or again."""
        return await self.post(purchase.path, purchase.body, **purchase.headers)

    async def post(self, url: str, body: dict, **headers: str) -> Answer:
        answer = await self.gateway.client.post(url, json=body, headers=headers)
        return Answer(answer.status_code, await answer.get_json())

    def waiting(self) -> list[str]:
        """Return the hashes in the public mempool."""
        with self.chain.node.lock:
            return ["0x" + key.hex() for key in self.chain.node.pool.waiting]

    def transfers(self, from_block: int) -> int:
        """Count the transfers to the wallet from a block on."""
        about = {
            "address": BASE.token,
            "topics": [TRANSFER_TOPIC, None, topic(WALLET)],
            "fromBlock": hex(from_block),
            "toBlock": "latest",
        }
        return len(self.chain.rpc.result("eth_getLogs", about))

    async def tasks(self) -> int:
        counts = await self.gateway.services.store.counts()
        return sum(counts["tasks"].values())

    @contextlib.asynccontextmanager
    async def one_sale(self) -> AsyncIterator[list[Answer]]:
        """Check that the responses in the list are those of exactly one sale."""
        first, tasks, calls = self.chain.block.number + 1, await self.tasks(), self.calls
        answers: list[Answer] = []
        yield answers
        sold = {answer.body["taskId"] for answer in answers if answer.status == 200}
        assert len(sold) == 1, tally(answers)
        done = await self.gateway.wait(sold.pop())
        assert (done["status"], done["payment"]["state"]) == ("completed", "settled"), done
        assert self.transfers(first) == 1, tally(answers)
        assert await self.tasks() == tasks + 1
        assert self.calls == calls + 1

    @property
    def calls(self) -> int:
        """How often the provider was called."""
        return len(self.provider.requests)


FLOWS = pytest.mark.parametrize("flow", [Shop.x402, Shop.direct], ids=["x402", "direct"])


def tally(answers: list[Answer]) -> dict[str, int]:
    """Count the responses."""
    return dict(collections.Counter(answer.outcome for answer in answers))


def settings_of(chain: PlayChain, folder: Path) -> Settings:
    """Return settings without limits, for a settlement key with gas for all rounds."""
    account = Account.create()
    chain.fund(account.address, eth_wei=10**21, usdc_units=0)
    return Settings(
        base_url="http://gateway.test",
        wallet=WALLET,
        rpc_urls=(chain.rpc_url,),
        data_dir=folder,
        settlement_key=account.key.hex(),
        plugin_values={"admin_password": "correct horse"},
        limit_x402="1000000/1s",
        limit_direct="1000000/1s",
        limit_task="1000000/1s",
        tx_patience=1.0,
        min_free_disk_mb=0,
    )


@contextlib.asynccontextmanager
async def open_shop(folder: Path) -> AsyncIterator[Shop]:
    """Run a chain and a gateway that has sold its first picture before the races.

    Unmined hashes are polled more often than in production, to save time.
    """
    with PlayChain() as chain:
        provider = ScriptedProvider()
        async with running(settings_of(chain, folder), provider) as gateway:
            gateway.services.payments.transfers.ask_again_s = 0.05
            await gateway.services.payments.cutoff_block()
            payer = Payer(chain)
            chain.fund(payer.account.address, eth_wei=10**21, usdc_units=10**12)
            shop = Shop(gateway, chain, provider, payer)
            async with shop.one_sale() as answers:
                answers.append(await shop.buy(payer.header()))
            yield shop
