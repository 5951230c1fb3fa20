"""Payments: keys, signed authorizations, headers, payer's proofs, and the two requests."""

import functools
import json
from base64 import b64encode
from collections.abc import Awaitable

import attrs

from gateway import Authorization, GenerationRequest
from gateway.chain.signer import address_of
from gateway.chain.smart_wallets import sign_digest
from gateway.contracts import Quote
from gateway.domain.eip3009 import BASE, authorization_digest, transfer_calldata
from gateway.errors import PaymentRequired
from gateway.payments import Accepted
from gateway.payments.direct import PayerProof, proof_digest
from gateway.payments.sent import SentRequest
from gateway.running.gateway import Gateway
from tests.proof.simulation import market
from tests.proof.simulation.chain import SimulatedChain
from tests.proof.simulation.ground import Ask


@functools.lru_cache(maxsize=64)
def key_of(name: str) -> tuple[bytes, str]:
    """Return a person's (private key, lower-case address), the same in every history."""
    secret = name.encode().rjust(32, b"\x01")
    return secret, address_of(secret)


@attrs.frozen
class SignedHeader:
    """An authorization with its signature, and its header."""

    authorization: Authorization
    header: str
    data: bytes  # the call that uses it

    @property
    def key(self) -> str:
        return BASE.authorization_key(self.authorization.sender, self.authorization.nonce)


def sign(
    chain: SimulatedChain,
    name: str,
    *,
    seconds: float,
    to: str = market.WALLET,
    units: int = market.PRICE_UNITS,
    nonce: str | None = None,
    valid_after: int | None = None,
) -> SignedHeader:
    """Sign an authorization that is valid for some seconds; without `valid_after`, since now."""
    key, address = key_of(name)
    world = chain.world
    if valid_after is None:
        valid_after = world.dice.choice((0, int(world.now()) - 30))
    plain = Authorization(
        sender=address,
        recipient=to.lower(),
        value_units=units,
        valid_after=valid_after,
        valid_before=int(world.now() + seconds),
        nonce=nonce or "0x" + world.dice.randbytes(32).hex(),
        signature=b"",
    )
    signature = sign_digest(key, authorization_digest(plain, BASE))
    if address in chain.token.wallets:
        signature = b"\x07" * 64 + b"\x1b"  # its code takes any, and no key of its own made it
    signed = attrs.evolve(plain, signature=signature)
    data = transfer_calldata(signed)
    if address not in chain.token.wallets:
        chain.token.signatures.add(data)
    return SignedHeader(signed, header_of(signed), data)


def header_of(signed: Authorization) -> str:
    authorization = {
        "from": signed.sender,
        "to": signed.recipient,
        "value": str(signed.value_units),
        "validAfter": str(signed.valid_after),
        "validBefore": str(signed.valid_before),
        "nonce": signed.nonce,
    }
    payload = {"signature": "0x" + signed.signature.hex(), "authorization": authorization}
    envelope = {"x402Version": 1, "scheme": "exact", "network": "base", "payload": payload}
    return b64encode(json.dumps(envelope).encode()).decode()


def buy_x402(header: str, prompt: str, idempotency_key: str | None = None) -> Ask:
    request = GenerationRequest(prompt=prompt)

    def ask(services: Gateway) -> Awaitable[Accepted]:
        payments, quote = services.payments, _quote(services)
        sent = SentRequest.of(quote, request)

        async def buy(refusal: PaymentRequired | None) -> Accepted:
            return await payments.accept_x402(
                quote, request, header, idempotency_key, sent=sent, is_unknown=refusal is None
            )

        find = functools.partial(payments.find_x402, sent, header, idempotency_key)
        return payments.find_or_buy(find, buy)

    return ask


def buy_direct(
    tx_hash: str, prompt: str, idempotency_key: str | None, prover: str | None = None
) -> Ask:
    """Ask with a hash; `prover` signs that the transfer is his."""
    request = GenerationRequest(prompt=prompt)

    def ask(services: Gateway) -> Awaitable[Accepted]:
        payments, quote = services.payments, _quote(services)
        sent = SentRequest.of(quote, request)

        async def buy(_: object) -> Accepted:
            proof = None if prover is None else prove(prover, quote, tx_hash)
            return await payments.accept_direct(
                quote, request, tx_hash, idempotency_key, proof, sent
            )

        find = functools.partial(payments.find_transfer, sent, tx_hash, idempotency_key)
        return payments.find_or_buy(find, buy)

    return ask


def prove(name: str, asked: Quote, tx_hash: str) -> PayerProof:
    digest = proof_digest(asked, tx_hash, bytes(32))
    return PayerProof(digest=digest, signature=sign_digest(key_of(name)[0], digest))


def _quote(services: Gateway) -> Quote:
    return services.quote(services.catalog[market.SLUG].endpoint)
