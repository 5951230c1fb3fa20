"""A JSON-RPC endpoint of a chain with a block every 200 ms, which counts calls and limits logs."""

import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import attrs
from aiohttp import web

from gateway.domain import Authorization
from gateway.domain.eip3009 import (
    AUTHORIZATION_STATE,
    AUTHORIZATION_USED_TOPIC,
    BASE,
    DOMAIN_SEPARATOR,
    TRANSFER_TOPIC,
    topic,
    word,
)

BLOCK_S = 0.2
# 46 days.
HEAD = 20_000_000
_TX_HASH = "0x" + "7a" * 32
# A usual full node.
_KEPT_BLOCKS = 128


@attrs.define(kw_only=True)
class LimitedChain:
    """One transaction spends one nonce. Everything else on the chain is empty."""

    most_log_blocks: int
    keeps_state: bool = True
    signed: Authorization | None = None
    spent_in: int = HEAD + 1
    now: float = attrs.field(factory=time.time)
    calls: Counter[str] = attrs.field(factory=Counter)
    url: str = ""

    def number_at(self, age_s: float) -> int:
        """Return the number of the newest block of that age."""
        return HEAD - round(age_s / BLOCK_S)

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator["LimitedChain"]:
        """Listen on a port of this machine within the block."""
        app = web.Application()
        app.router.add_post("/", self._serve)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.calls[asked["method"]] += 1
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        try:
            answer["result"] = self._answer(asked["method"], asked["params"])
        except _Refused as refusal:
            answer["error"] = {"code": -32000, "message": str(refusal)}
        return web.json_response(answer)

    def _answer(self, method: str, params: list[Any]) -> Any:
        if method == "eth_chainId":
            return hex(BASE.chain_id)
        if method == "eth_call":
            return self._call(params[0]["data"], _number_of(params[1]))
        if method == "eth_getLogs":
            return self._logs(params[0])
        if method == "eth_getTransactionReceipt":
            return self._receipt()
        return self._block(_number_of(params[0]))

    def _call(self, data: str, number: int) -> str:
        if data == "0x" + DOMAIN_SEPARATOR.hex():
            return "0x" + BASE.domain_separator.hex()
        if not data.startswith("0x" + AUTHORIZATION_STATE.hex()):
            raise _Refused(f"unknown call {data[:10]}")
        if not self.keeps_state and number < HEAD - _KEPT_BLOCKS:
            raise _Refused("missing trie node")
        return "0x" + word(int(number >= self.spent_in)).hex()

    def _block(self, number: int) -> dict[str, str]:
        at = self.now - (HEAD - number) * BLOCK_S
        return {"number": hex(number), "hash": _hash(number), "timestamp": hex(int(at))}

    def _logs(self, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        if last - first >= self.most_log_blocks:
            raise _Refused(f"query exceeds max block range {self.most_log_blocks}")
        is_transfer = query["topics"][0] == TRANSFER_TOPIC
        if is_transfer or not first <= self.spent_in <= last:
            return []
        return [self._receipt()["logs"][0]]

    def _receipt(self) -> dict[str, Any]:
        signed = self.signed
        assert signed is not None
        place = {
            "blockNumber": hex(self.spent_in),
            "blockHash": _hash(self.spent_in),
            "transactionHash": _TX_HASH,
        }
        payer, log = topic(signed.sender), {"address": BASE.token, **place}
        used = [AUTHORIZATION_USED_TOPIC, payer, signed.nonce]
        moved = [TRANSFER_TOPIC, payer, topic(signed.recipient)]
        units = "0x" + word(signed.value_units).hex()
        logs = [
            {**log, "topics": used, "data": "0x", "logIndex": "0x0"},
            {**log, "topics": moved, "data": units, "logIndex": "0x1"},
        ]
        return {**place, "status": "0x1", "logs": logs}


class _Refused(Exception):
    """The call gets a JSON-RPC error."""


def _hash(number: int) -> str:
    return f"0x{number:064x}"


def _number_of(where: Any) -> int:
    """Return the number that a block parameter names; a hash contains it."""
    named = where["blockHash"] if isinstance(where, dict) else where
    return HEAD if named in ("latest", "safe") else int(named, 16)
