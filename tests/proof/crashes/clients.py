"""The load on the gateway while it is killed: honest buyers of both flows, and a dishonest client.

An honest client conforms: without a response or after a 5xx it repeats the request, after a 402 it
signs again. It remembers all responses, which are compared with the chain at the end.
"""

import http.client
import random
import threading
import time
from collections import Counter

import attrs

from tests.conftest import Payer

PRICE = 20_000
_AGAIN_S = 0.01  # between two tries to reach a gateway that was killed
# With one purchase. On a busy machine a gateway that is killed all the time seldom answers.
_PATIENCE_S = 600
_NOT_FOUND = 404
_NOT_YET = "TX_NOT_FOUND"  # the one refusal after which the specification says: again
_MAX_SIGNATURES = 10  # of one purchase; a client that signs on and on is a finding


@attrs.define(eq=False)
class Purchase:
    """One purchase with all its signatures and responses."""

    prompt: str
    claims: set[str] = attrs.field(factory=set)  # nonces signed, or the transaction's hash
    header: str = ""  # the last one signed
    task_ids: set[str] = attrs.field(factory=set)  # of every 200
    surprises: list[str] = attrs.field(factory=list)  # what a conforming client never hears


@attrs.define
class Memory:
    """The memory of all clients. Threads only append."""

    purchases: list[Purchase] = attrs.field(factory=list)
    stolen: list[str] = attrs.field(factory=list)  # task ids somebody had for another's money
    headers: dict[str, str] = attrs.field(factory=dict)  # by nonce: public with the settlement
    answers: list[str] = attrs.field(factory=list)  # every answer's status, or why there was none

    def tally(self) -> Counter:
        return Counter(self.answers)


class Client(threading.Thread):
    """Repeats `once` until stopped, and then finishes its work."""

    def __init__(self, gateway, chain, memory: Memory, seed: int) -> None:
        super().__init__(daemon=True)
        self.gateway = gateway
        self.chain = chain
        self.memory = memory
        self.chance = random.Random(seed)
        self.stopping = threading.Event()
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                self.once()
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self.problem = error

    def once(self) -> None:
        raise NotImplementedError

    def ask(self, path: str, body: dict, headers: dict) -> tuple[int, dict] | None:
        """Send a request once; None without a response."""
        try:
            status, reply = self.gateway.request("POST", path, body, headers)
        except ConnectionRefusedError:
            return self._note_no_answer("refused")
        except (OSError, http.client.HTTPException, ValueError):
            return self._note_no_answer("cut off")
        self.memory.answers.append(str(status))
        return status, reply

    def _note_no_answer(self, why: str) -> None:
        self.memory.answers.append(why)


class Buyer(Client):
    """An honest buyer of one picture after the other."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.payer = Payer(self.chain)
        self.chain.fund(self.payer.account.address, eth_wei=10**20, usdc_units=10**12)

    def once(self) -> None:
        purchase = Purchase(prompt=f"boat {self.chance.getrandbits(64):x}")
        self.memory.purchases.append(purchase)
        self.buy(purchase)
        if self.chance.random() < 0.2 and purchase.task_ids:
            self.buy_again(purchase)

    def buy(self, purchase: Purchase) -> None:
        raise NotImplementedError

    def buy_again(self, purchase: Purchase) -> None:
        raise NotImplementedError

    def final_answer(self, purchase: Purchase, path: str, body: dict, headers: dict):
        """Repeat a request until there is a response that is not a 5xx."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            answer = self.ask(path, body, headers)
            if answer is not None and answer[0] < 500 and answer[1].get("code") != _NOT_YET:
                return answer
            time.sleep(_AGAIN_S)
        purchase.surprises.append("no answer at all")
        return None

    def note(self, purchase: Purchase, answer: tuple[int, dict] | None) -> None:
        if answer is None:
            return
        status, said = answer
        if status == 200:
            purchase.task_ids.add(said["taskId"])
        else:
            purchase.surprises.append(f"{status} {said.get('code')} {said.get('error')}")


class X402Buyer(Buyer):
    """Pays by signed authorizations, in v1 and v2."""

    slug = "slow"

    def buy(self, purchase: Purchase) -> None:
        for _ in range(_MAX_SIGNATURES):
            answer = self.send(purchase, self.sign(purchase))
            if answer is None or answer[0] != 402:
                self.note(purchase, answer)
                return
        purchase.surprises.append(f"{_MAX_SIGNATURES} times 402")

    def buy_again(self, purchase: Purchase) -> None:
        self.note(purchase, self.send(purchase, purchase.header))

    def sign(self, purchase: Purchase) -> str:
        signed = {
            "nonce": self.chance.randbytes(32),
            "valid_before": int(time.time()) + self.chance.randrange(25, 60),
        }
        nonce = "0x" + signed["nonce"].hex()
        purchase.claims.add(nonce)
        purchase.header = self.payer.header(version=self.chance.choice((1, 2)), **signed)
        self.memory.headers[nonce] = purchase.header
        return purchase.header

    def send(self, purchase: Purchase, header: str):
        body = {"prompt": purchase.prompt}
        return self.final_answer(purchase, f"/api/x402/{self.slug}", body, {"X-PAYMENT": header})


class NewerBuyer(X402Buyer):
    """Buys from an endpoint that only some nodes have; another one answers 404."""

    slug = "newer"

    def ask(self, path: str, body: dict, headers: dict) -> tuple[int, dict] | None:
        answer = super().ask(path, body, headers)
        return None if answer is not None and answer[0] == _NOT_FOUND else answer


class DirectBuyer(Buyer):
    """Pays by transfers, and sends an Idempotency-Key."""

    def buy(self, purchase: Purchase) -> None:
        purchase.claims.add(self.payer.transfer(PRICE))
        self.buy_again(purchase)

    def buy_again(self, purchase: Purchase) -> None:
        (tx_hash,) = purchase.claims
        body = {"slug": "slow", "prompt": purchase.prompt, "txHash": tx_hash}
        key = {"Idempotency-Key": tx_hash}
        self.note(purchase, self.final_answer(purchase, "/api/proxy-generate", body, key))


class Observer(Client):
    """Reads the mempool and tries to use others' payments."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.settlements: dict[str, str] = {}  # the nonce by the transaction

    def once(self) -> None:
        new = [one for one in self.chain.waiting_settlements() if one[0] not in self.settlements]
        self.settlements.update(new)
        old = self.chance.sample(list(self.settlements.items()), min(1, len(self.settlements)))
        for tx_hash, nonce in new[-2:] + old:
            self.steal("/api/proxy-generate", {"slug": "slow", "txHash": tx_hash})
            if header := self.memory.headers.get(nonce):
                self.steal("/api/x402/slow", {}, {"X-PAYMENT": header})
        time.sleep(_AGAIN_S)

    def steal(self, path: str, body: dict, headers: dict | None = None) -> None:
        answer = self.ask(path, body | {"prompt": "something else"}, headers or {})
        if answer is not None and answer[0] == 200:
            self.memory.stolen.append(answer[1]["taskId"])


class Miner(Client):
    """Mines a block now and then, so that transactions wait as on a real chain."""

    def once(self) -> None:
        time.sleep(self.chance.uniform(0.02, 0.3))
        self.chain.result("evm_mine")
