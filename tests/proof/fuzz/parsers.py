"""Runs the parsers on hostile inputs: each returns a value or a documented error."""

import asyncio
import itertools
import re

from gateway import Endpoint, Settings
from gateway.chain.client import Web3Chain
from gateway.chain.endpoints import Endpoint as RpcEndpoint
from gateway.chain.transport import KeepAliveProvider
from gateway.contracts import CallReverted, PluginContext, Quote
from gateway.domain import Block, Choice
from gateway.domain.eip3009 import BASE, transfers_to
from gateway.errors import ChainUnavailable, PaymentRequired, ValidationError
from gateway.store.rows import dump, dump_request
from gateway.web import bodies
from gateway_mpp.challenges import read_echo
from gateway_mpp.verifier import MppVerifier
from gateway_x402 import messages
from gateway_x402.verifier import X402Verifier
from tests.conftest import WALLET
from tests.proof.fuzz.measures import SPOKEN, check_price
from tests.proof.fuzz.rpc_answers import HASH, NONCE, PAYER

_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_ID = re.compile(r"[A-Za-z0-9_-]{16,128}")
_BYTES32 = re.compile(r"0x[0-9a-f]{64}")
_NOW = 4_000_000_000 - 300
_SETTINGS = Settings(wallet=WALLET)
_PICTURE = Endpoint(
    slug="picture",
    title="A picture",
    description="One pixel.",
    model="pixel-1",
    provider="scripted",
    capability="text-to-image",
    price_units=20_000,
    output_format=Choice(values=("png", "jpg"), default="png"),
)
_PAPER = Endpoint(
    slug="paper",
    title="A paper",
    description="Its text.",
    model="text-1",
    provider="scripted",
    capability="document-parsing",
    price_units=10_000,
    required_fields=("fileBase64", "fileName"),
    file_extensions=(".pdf", ".txt"),
)
_QUOTE = Quote(
    endpoint=_PICTURE, price_units=20_000, network=BASE, wallet=WALLET, resource_url="http://a/b"
)


def read_body(data: bytes) -> str:
    """Parse a body for every endpoint; accepted ones can be stored too."""
    outcome = "refused"
    for kind, endpoint in itertools.product(
        (bodies.GenerationBody, bodies.DirectBody), (_PICTURE, _PAPER, SPOKEN)
    ):
        try:
            request = bodies.request_of(bodies.read(kind, data), endpoint)
        except ValidationError:
            continue
        dump_request(request).encode()
        if endpoint is SPOKEN:
            check_price(endpoint, request)
        assert _BYTES32.fullmatch("0x" + request.fingerprint(endpoint.slug))
        outcome = "accepted"
    return outcome


def read_header(header: str) -> str:
    """Parse a payment header; accepted ones have only possible values."""
    verifier = X402Verifier(BASE, None)
    try:
        proof = messages.decode(header)
    except PaymentRequired as refusal:
        return _standard(refusal, "refused")
    except ValidationError:
        # The id of `payment-identifier`.
        return "refused"
    assert proof.idempotency_key is None or _ID.fullmatch(proof.idempotency_key)
    signed = proof.authorization
    assert _ADDRESS.fullmatch(signed.sender)
    assert _ADDRESS.fullmatch(signed.recipient)
    assert _BYTES32.fullmatch(signed.nonce)
    assert all(
        0 <= number < 2**256
        for number in (signed.value_units, signed.valid_after, signed.valid_before)
    )
    dump(signed).encode()
    try:
        verifier.check_terms(proof, _QUOTE, _NOW)
    except PaymentRequired as refusal:
        return _standard(refusal, "terms refused")
    return "accepted"


def _context() -> PluginContext:
    return PluginContext(
        settings=_SETTINGS,
        chain=None,
        journal=None,
        now=lambda: float(_NOW),
        derive_secret=lambda _: "5e" * 32,
    )


MPP = MppVerifier(_context())


def credential() -> dict:
    """Return a credential of the scheme `Payment` that answers a challenge of `MPP`."""
    header = MPP.challenge(_QUOTE, None, 2).headers["WWW-Authenticate"]
    challenge = dict(re.findall(r'(\w+)="([^"]*)"', header))
    paid = {
        "type": "authorization",
        "from": PAYER,
        "to": WALLET,
        "value": "20000",
        "validAfter": "0",
        "validBefore": str(_NOW + 300),
        "nonce": read_echo(challenge).nonces[0],
        "signature": "0x" + "1b" * 65,
    }
    return {"challenge": challenge, "payload": paid, "source": f"did:pkh:eip155:8453:{PAYER}"}


def read_credential(header: str) -> str:
    """Parse a credential; accepted ones are for our quote and our challenge."""
    try:
        proof = MPP.read(header)
        dump(proof.authorization).encode()
    except PaymentRequired as refusal:
        return _standard(refusal, "refused")
    try:
        MPP.check_terms(proof, _QUOTE, _NOW)
    except PaymentRequired as refusal:
        return _standard(refusal, "terms refused")
    assert proof.authorization.nonce in proof.challenge.nonces
    assert proof.authorization.value_units == _QUOTE.price_units
    return "accepted"


def _standard(refusal: PaymentRequired, outcome: str) -> str:
    assert re.fullmatch("(invalid|unsupported|mpp)_[a-z0-9_]+", refusal.reason)
    return outcome


class Scripted(KeepAliveProvider):
    """web3's provider without the wire: the next response's bytes are set by the test."""

    def __init__(self) -> None:
        super().__init__("http://hostile.test")
        self.answer = b""

    async def _post(self, data: bytes) -> bytes:
        return self.answer


async def scripted_chain(*providers) -> Web3Chain:
    """Return a chain whose endpoints are these providers, already checked."""
    chain = Web3Chain(_SETTINGS)
    chain._rpc._endpoints = [
        RpcEndpoint(place=place, provider=provider, timeout_s=5, checks_passed=2)
        for place, provider in enumerate(providers, start=1)
    ]
    # Disable caching, so that each response is read.
    chain._fees.ttl_s = 0.0
    return chain


class ChainReader:
    """Reads one response as each kind of chain data."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._provider, self._chain = self._runner.run(self._open())

    async def _open(self):
        provider = Scripted()
        return provider, await scripted_chain(provider)

    def close(self) -> None:
        self._runner.run(self._chain.close())
        self._runner.close()

    def read(self, answer: bytes) -> str:
        """Make every call; only documented errors may be raised."""
        self._provider.answer = answer
        outcomes = self._runner.run(self._ask_all())
        return "accepted" if "accepted" in outcomes else "refused"

    async def _ask_all(self) -> set[str]:
        return {await self._ask(question) for question in _QUESTIONS}

    async def _ask(self, question) -> str:
        try:
            answer = await question(self._chain)
        except (ChainUnavailable, CallReverted):
            return "refused"
        _check(answer)
        return "accepted" if answer else "refused"


_KNOWN = Block(number=5, hash="0x" + "cd" * 32, timestamp=1)
_QUESTIONS = [
    lambda chain: chain.head(),
    lambda chain: chain.block_at(5),
    lambda chain: chain.block("0x" + "cd" * 32),
    lambda chain: chain.receipt(HASH),
    lambda chain: chain.call(b"\x01"),
    lambda chain: chain.call_uint(b"\x01"),
    lambda chain: chain.authorization_logs(PAYER, NONCE, from_block=0, to_block=9, known=_KNOWN),
    lambda chain: chain.gas_balance(PAYER),
    lambda chain: chain.transaction_count(PAYER),
    lambda chain: chain.fees(),
    lambda chain: chain.send(b"\x02"),
]


def _check(answer) -> None:
    """Check that the result can be compared, summed and stored."""
    if not hasattr(answer, "logs"):
        return
    for transfer in transfers_to(WALLET, answer, BASE):
        assert transfer.amount_units > 0
        assert _ADDRESS.fullmatch(transfer.sender), transfer
        assert 0 <= transfer.log_index < 2**63, transfer
        assert transfer.amount_units < 2**63, transfer
        key = transfer.authorization_key
        assert key is None or _BYTES32.fullmatch(key.rpartition(":")[2]), transfer
