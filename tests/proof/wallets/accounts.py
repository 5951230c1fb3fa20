"""Accounts with code that pay by x402, honest and dishonest."""

import attrs
from eth_abi.abi import encode
from eth_account import Account

from gateway_demo import token
from gateway_demo.chain import FAUCET_KEY, PlayChain
from gateway_demo.chain import contracts as chain_contracts
from gateway_demo.chain.contracts import Contract
from gateway_demo.token import Authorization
from tests.authorizations import header_of, payload_of
from tests.conftest import WALLET

MAGIC = bytes.fromhex("1626ba7e").ljust(32, b"\0")
WRAPPED = bytes.fromhex("6492" * 16)
HEADER = {1: "X-PAYMENT", 2: "PAYMENT-SIGNATURE"}


@attrs.define
class SmartPayer:
    """A smart account with play money, and a key whose signatures it accepts."""

    chain: PlayChain
    address: str
    owner: object

    def authorization(self, units: int = 20_000, **changes) -> Authorization:
        return attrs.evolve(Authorization(sender=self.address, to=WALLET, units=units), **changes)

    def sign(self, signed: Authorization) -> bytes:
        return signed.sign(self.owner.key, self.chain.chain_id, self.chain.usdc)

    def header(self, *, version: int = 1, wrap=lambda signature: signature, **changes) -> str:
        signed = self.authorization(**changes)
        return header_of(payload_of(signed, wrap(self.sign(signed)), version=version))


@attrs.define
class Undeployed(SmartPayer):
    """A smart account that its factory can deploy."""

    factory: str
    create: bytes

    def wrap(self, signature: bytes, **changes) -> bytes:
        parts = {"factory": self.factory, "create": self.create} | changes
        return wrap(parts["factory"], parts["create"], signature)

    def deploy(self, **fees) -> str:
        return self.chain.send_transaction(FAUCET_KEY, self.factory, self.create, **fees)

    @property
    def is_deployed(self) -> bool:
        return self.chain.rpc.result("eth_getCode", self.address, "latest") != "0x"


def wrap(factory: str, create: bytes, signature: bytes) -> bytes:
    """Wrap a signature according to ERC-6492."""
    return encode(["address", "bytes", "bytes"], [factory, create, signature]) + WRAPPED


def smart_payer(chain: PlayChain) -> SmartPayer:
    owner = Account.create()
    address = chain.deploy(FAUCET_KEY, chain_contracts.load("SmartAccount"))
    data = token.call_data("initialize", ["address"], owner.address)
    chain.send_transaction(FAUCET_KEY, address, data)
    chain.fund(address)
    return SmartPayer(chain, address, owner)


def undeployed(chain: PlayChain) -> Undeployed:
    owner = Account.create()
    code = chain.deploy(FAUCET_KEY, chain_contracts.load("SmartAccount"))
    factory = chain.deploy(FAUCET_KEY, chain_contracts.load("AccountFactory"))
    types = ["address", "address", "bytes32"]
    create = token.call_data("create", types, code, owner.address, bytes(32))
    address = "0x" + chain.call(factory, create)[12:].hex()
    chain.fund(address)
    return Undeployed(chain, address, owner, factory, create)


def hostile(chain: PlayChain, runtime: bytes) -> SmartPayer:
    """Put any code at an address with money."""
    contract = Contract(name="hostile", compiler="", source_sha256="", abi=[], runtime=runtime)
    address = chain.deploy(FAUCET_KEY, contract)
    chain.fund(address)
    return SmartPayer(chain, address, Account.create())


def answering(data: bytes, end: str = "f3") -> bytes:
    """Assemble code that always returns `data`, or reverts with it."""
    size = f"61{len(data):04x}"  # PUSH2
    head = f"{size}600f6000 39 {size}6000{end}"  # CODECOPY(0, 15, size), RETURN or REVERT(0, size)
    return bytes.fromhex(head).ljust(15, b"\0") + data


def reverting(data: bytes) -> bytes:
    return answering(data, "fd")


def yes_after(loop: str) -> bytes:
    """Assemble code that accepts everything after `loop`."""
    return bytes.fromhex(loop + "631626ba7e60e01b60005260206000f3")


BURNS_ALL = bytes.fromhex("5b600056")  # JUMPDEST, PUSH 0, JUMP
BURNS_NEARLY_ALL = yes_after("5b6113885a11600057")  # JUMPDEST, GAS > 5,000, PUSH 0, JUMPI
