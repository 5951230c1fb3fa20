"""Short helpers for purchases in both flows, payers with smart accounts, and a lossy endpoint."""

import hashlib
import json

import attrs
from eth_account import Account

from gateway_demo.chain import PlayChain
from gateway_demo.chain import contracts as chain_contracts
from gateway_demo.chain.server import RpcServer
from gateway_demo.token import Authorization, call_data, transfer_call
from tests.authorizations import decoded, header_of, payload_of
from tests.conftest import WALLET

UNPROVEN = (400, "INVALID_PAYMENT")
FIELDS = ("prompt", "aspect_ratio", "output_format", "resolution", "fileName", "fileBase64")
PAYER_PROOF = [
    {"name": "txHash", "type": "bytes32"},
    {"name": "slug", "type": "string"},
    {"name": "requestHash", "type": "bytes32"},
]


class LossyRpc:
    """A JSON-RPC endpoint in front of the chain that hangs up on the methods in `broken`."""

    def __init__(self, chain: PlayChain) -> None:
        self.chain = chain
        self.broken: set[str] = set()
        self.seen: list[tuple] = []  # (method, what was called)
        self._server = RpcServer(self._answer, host="127.0.0.1", port=0)
        self.url = self._server.url

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop()

    def _answer(self, body: bytes) -> bytes:
        request = json.loads(body)
        call = request["params"][0] if request["params"] else None
        self.seen.append((request["method"], call))
        if request["method"] in self.broken:
            raise ConnectionError("hangs up")
        return self.chain.rpc.answer(body)


# -- x402


async def buy(gateway, header: str, key: str | None = None, *, slug="picture", **changes):
    """Request a picture by x402."""
    headers = {"X-PAYMENT": header} | ({"Idempotency-Key": key} if key is not None else {})
    body = {"prompt": "a boat"} | changes
    return await gateway.client.post(f"/api/x402/{slug}", json=body, headers=headers)


async def bought(gateway, header: str, key: str | None = None, **changes) -> str:
    """Buy a picture; return its task's id."""
    answer = await buy(gateway, header, key, **changes)
    body = await answer.get_json()
    assert answer.status_code == 200, body
    return body["taskId"]


async def refusal(answer) -> tuple[int, str]:
    """Return status and code of a refusal; for a 402 its reason."""
    body = await answer.get_json()
    return answer.status_code, body.get("code") or body["error"]


def receipt(answer) -> dict:
    """Return the settlement's receipt in a 200."""
    return decoded(answer.headers["X-PAYMENT-RESPONSE"])


async def payments(gateway) -> dict[str, int]:
    return (await gateway.services.store.counts()).get("payments", {})


async def column(gateway, name: str) -> list:
    """Return a column of all payments, in order."""
    rows = await gateway.services.store._rows(f"SELECT {name} FROM payments ORDER BY id")
    return [row[0] for row in rows]


# -- the direct flow


def written(body: dict) -> str:
    """Return the JSON that is hashed: like JavaScript's JSON.stringify with sorted keys."""
    fields = {name: body[name] for name in FIELDS if body.get(name) is not None}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def signed(account, body: dict, *, wallet=WALLET, chain_id=8453, version="1", **changes) -> dict:
    """Return the body with its payerSignature, made by eth_account; `changes` are signed instead.

    `request_hash` among them replaces the hash.
    """
    facts = body | changes
    message = {
        "txHash": bytes.fromhex(facts["txHash"][2:]),
        "slug": facts["slug"],
        "requestHash": changes.get("request_hash")
        or hashlib.sha256(written(facts).encode()).digest(),
    }
    domain = {
        "name": "Generation Gateway",
        "version": version,
        "chainId": chain_id,
        "verifyingContract": wallet,
    }
    proof = account.sign_typed_data(domain, {"PayerProof": PAYER_PROOF}, message)
    return body | {"payerSignature": "0x" + bytes(proof.signature).hex()}


def request(tx_hash: str, **changes) -> dict:
    return {"slug": "picture", "prompt": "a boat", "txHash": tx_hash} | changes


async def submit(gateway, body: dict, key: str | None = None):
    headers = {"Idempotency-Key": key} if key is not None else {}
    return await gateway.client.post("/api/proxy-generate", json=body, headers=headers)


async def accepted(gateway, body, key=None) -> dict:
    answer = await submit(gateway, body, key)
    reply = await answer.get_json()
    assert answer.status_code == 200, reply
    return reply


# -- people


@attrs.define
class SmartPayer:
    """A person whose money is in a smart account (EIP-1271) owned by his key."""

    chain: PlayChain
    owner: object = attrs.field(factory=Account.create)
    address: str = ""

    def __attrs_post_init__(self) -> None:
        self.chain.fund(self.owner.address)
        self.address = self.chain.deploy(self.owner.key, chain_contracts.load("SmartAccount"))
        call = call_data("initialize", ["address"], self.owner.address)
        self.chain.send_transaction(self.owner.key, self.address, call)
        self.chain.fund(self.address)

    def header(self, *, by=None) -> str:
        """Return an X-PAYMENT header signed by the owner, or by another account."""
        paid = Authorization(sender=self.address, to=WALLET, units=20_000)
        signature = paid.sign((by or self.owner).key, self.chain.chain_id, self.chain.usdc)
        return header_of(payload_of(paid, signature))

    def transfer(self, units: int) -> str:
        """Let the account send a transfer."""
        types = ["address", "uint256", "bytes"]
        call = call_data("execute", types, self.chain.usdc, 0, transfer_call(WALLET, units))
        return self.chain.send_transaction(self.owner.key, self.address, call)
