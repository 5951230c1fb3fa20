"""A throw-away wallet: signs x402 payments and transactions, and calls the chain's JSON-RPC."""

import base64
import json
import secrets
import time
from typing import Any, Self

import attrs
import requests
from eth_account import Account
from eth_account.signers.local import LocalAccount

from gateway_demo import token
from gateway_demo.tour.errors import DemoError
from gateway_demo.tour.place import NETWORK

CHAIN_ID = NETWORK.chain_id
USDC = token.USDC_ADDRESSES[CHAIN_ID]
ONE_ETH = 10**18  # wei
# A client should limit the amount that it signs.
_MAX_UNITS = 1_000_000
_TIMEOUT_S = 10.0
AUTHORIZATION_TYPES = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


@attrs.define
class Rpc:
    """A JSON-RPC node."""

    url: str
    session: requests.Session = attrs.field(repr=False)

    def ask(self, method: str, *params: Any) -> Any:
        """Return a call's result; raises `DemoError` for an error."""
        body: Any = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.session.post(self.url, json=body, timeout=_TIMEOUT_S).json()
        if "error" in answer:
            raise DemoError(f"The chain refused {method}: {answer['error']['message']}")
        return answer["result"]

    def answers(self) -> bool:
        """Whether the node responds with this chain's id."""
        try:
            return int(self.ask("eth_chainId"), 16) == CHAIN_ID
        except requests.ConnectionError:
            return False

    def usdc_units(self, owner: str) -> int:
        """Return an account's USDC in units of 10⁻⁶."""
        call = {"to": USDC, "input": "0x" + token.balance_call(owner).hex()}
        return int(self.ask("eth_call", call, "latest"), 16)

    def wei(self, owner: str) -> int:
        """Return an account's ETH in wei."""
        return int(self.ask("eth_getBalance", owner, "latest"), 16)

    def fund(self, owner: str, *, eth_wei: int, usdc_units: int) -> None:
        """Give an account play money, by a method that only the embedded chain has."""
        self.ask("play_fund", owner, hex(eth_wei), hex(usdc_units))

    def gas_paid(self, tx_hash: str) -> tuple[int, int]:
        """Return the gas that a mined transaction used, and its cost in wei."""
        receipt = self.ask("eth_getTransactionReceipt", tx_hash)
        if receipt is None or int(receipt["status"], 16) != 1:
            raise DemoError(f"The transaction {tx_hash} is not on the chain.")
        gas = int(receipt["gasUsed"], 16)
        return gas, gas * int(receipt["effectiveGasPrice"], 16)


@attrs.frozen
class Wallet:
    """A private key that signs payments and transactions."""

    account: LocalAccount = attrs.field(repr=False)

    @classmethod
    def of(cls, key: str) -> Self:
        """Return the wallet of a private key."""
        return cls(Account.from_key(key))

    @property
    def address(self) -> str:
        """The address, with its checksum."""
        return str(self.account.address)

    def sign_payment(self, challenge: dict[str, Any]) -> dict[str, Any]:
        """Sign the first offer of an x402 challenge: an EIP-3009 authorization of a transfer.

        Raises `DemoError` for another token or a price above the client's limit.
        """
        terms = challenge["accepts"][0]
        _check_terms(terms)
        message = {
            "from": self.address,
            "to": terms["payTo"],
            "value": int(terms["amount"]),
            "validAfter": 0,
            "validBefore": int(time.time()) + terms["maxTimeoutSeconds"],
            "nonce": "0x" + secrets.token_hex(32),
        }
        domain = {
            "name": terms["extra"]["name"],
            "version": terms["extra"]["version"],
            "chainId": int(terms["network"].removeprefix("eip155:")),
            "verifyingContract": terms["asset"],
        }
        # In early releases of eth-account 0.13 accounts have no such method.
        signed = Account.sign_typed_data(self.account.key, domain, AUTHORIZATION_TYPES, message)
        numbers = {name: str(message[name]) for name in ("value", "validAfter", "validBefore")}
        return {
            "x402Version": challenge["x402Version"],
            "accepted": terms,
            "payload": {
                "signature": "0x" + bytes(signed.signature).hex(),
                "authorization": message | numbers,
            },
        }

    def transfer_usdc(self, rpc: Rpc, to: str, units: int) -> str:
        """Send a transfer of USDC and return its hash. It is mined at once."""
        # False: without the block's transactions.
        block = rpc.ask("eth_getBlockByNumber", "latest", False)  # noqa: FBT003
        tip_wei = int(rpc.ask("eth_maxPriorityFeePerGas"), 16)
        data = "0x" + token.transfer_call(to, units).hex()
        call = {"from": self.address, "to": USDC, "input": data}
        transaction: Any = {
            "chainId": CHAIN_ID,
            "nonce": int(rpc.ask("eth_getTransactionCount", self.address, "pending"), 16),
            "to": USDC,
            "data": data,
            "gas": int(rpc.ask("eth_estimateGas", call), 16),
            "maxFeePerGas": 2 * int(block["baseFeePerGas"], 16) + tip_wei,
            "maxPriorityFeePerGas": tip_wei,
        }
        signed = self.account.sign_transaction(transaction)
        tx_hash: str = rpc.ask("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex())
        return tx_hash


def _check_terms(terms: dict[str, Any]) -> None:
    is_ours = terms["network"] == f"eip155:{CHAIN_ID}" and terms["asset"].lower() == USDC.lower()
    if not is_ours or int(terms["amount"]) > _MAX_UNITS:
        raise DemoError("The gateway asks for another token, or for more than 1 USDC.")


def to_header(value: dict[str, Any]) -> str:
    """Return JSON in Base64, as x402 headers carry it."""
    return base64.b64encode(json.dumps(value).encode()).decode()


def from_header(value: str) -> dict[str, Any]:
    """Return the JSON of an x402 header."""
    read: dict[str, Any] = json.loads(base64.b64decode(value))
    return read
