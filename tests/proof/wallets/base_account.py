"""A Base Account: Coinbase's smart wallet, its factory, and signatures as its SDK returns them."""

import attrs
from eth_abi.abi import encode
from eth_account import Account
from eth_utils.address import to_canonical_address
from eth_utils.crypto import keccak

from gateway_demo import token
from gateway_demo.chain import FAUCET_KEY, PlayChain
from gateway_demo.chain import contracts as chain_contracts
from tests.proof.wallets.accounts import SmartPayer, wrap

# The addresses on Base.
FACTORY = "0xBA5ED110eFDBa3D005bfC882d75358ACBbB85842"
FIRST_FACTORY = "0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a"
IMPLEMENTATION = "0x00000110dCdEdC9581cb5eCB8467282f2926534d"
MULTICALL = "0xca11bde05977b3631167028862be2a173976ca11"
_AGGREGATE3 = keccak(text="aggregate3((address,bool,bytes)[])")[:4]
_CREATE = keccak(text="createAccount(bytes[],uint256)")[:4]


def install(chain: PlayChain) -> None:
    """Put Coinbase's contracts where they are on Base."""
    factory = chain_contracts.load("BaseAccountFactory").runtime
    codes = {
        FACTORY: factory,
        FIRST_FACTORY: factory,
        IMPLEMENTATION: chain_contracts.load("BaseAccount").runtime,
    }

    def change(state):
        for address, code in codes.items():
            state.set_code(to_canonical_address(address), code)
            state.set_nonce(to_canonical_address(address), 1)

    with chain.node.lock:
        chain.node.mine(change)


def aggregate(*calls: tuple[str, bytes]) -> bytes:
    """Encode calls for Multicall3, as viem does."""
    return _AGGREGATE3 + encode(
        ["(address,bool,bytes)[]"], [[(to, False, data) for to, data in calls]]
    )


@attrs.define
class BaseAccount(SmartPayer):
    """An account of one owner, which its factory can deploy."""

    factory: str
    create: bytes

    @property
    def is_deployed(self) -> bool:
        return self.chain.rpc.result("eth_getCode", self.address, "latest") != "0x"

    def deploy(self) -> None:
        self.chain.send_transaction(FAUCET_KEY, self.factory, self.create)

    def sign_digest(self, digest: bytes) -> bytes:
        """Sign as a deployed account: a hash that names the account, wrapped with the owner."""
        domain = (
            "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
        )
        names = [keccak(text=text) for text in (domain, "Coinbase Smart Wallet", "1")]
        types = ["bytes32", "bytes32", "bytes32", "uint256", "address"]
        separator = keccak(encode(types, [*names, self.chain.chain_id, self.address]))
        message = keccak(text="CoinbaseSmartWalletMessage(bytes32 hash)")
        struct = keccak(encode(["bytes32", "bytes32"], [message, digest]))
        signed = self.owner.unsafe_sign_hash(keccak(b"\x19\x01" + separator + struct))
        return encode(["(uint256,bytes)"], [(0, bytes(signed.signature))])

    def sign(self, signed: token.Authorization) -> bytes:
        return self.sign_digest(signed.digest(self.chain.chain_id, self.chain.usdc))

    def wrap(self, signature: bytes) -> bytes:
        """Wrap a signature as Coinbase's site does: Multicall3 calls the factory (ERC-6492)."""
        return wrap(MULTICALL, aggregate((self.factory, self.create)), signature)


def base_account(
    chain: PlayChain, factory: str = FACTORY, *, usdc_units: int = 10**6
) -> BaseAccount:
    """Return an account that is funded and not deployed."""
    owner = Account.create()
    owners = [encode(["address"], [owner.address])]
    create = _CREATE + encode(["bytes[]", "uint256"], [owners, 0])
    address = "0x" + chain.call(factory, create)[12:].hex()
    chain.fund(address, eth_wei=0, usdc_units=usdc_units)
    return BaseAccount(chain, address, owner, factory, create)
