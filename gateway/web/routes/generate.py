"""The routes that sell: x402 and direct purchases, and the price of an endpoint."""

import base64
import functools
import hashlib
import re
from typing import Any

import attrs
import structlog
from werkzeug.exceptions import MethodNotAllowed

from gateway.catalog.catalog import Catalog
from gateway.chain.authorization_checks import SPENT
from gateway.contracts import Challenge, Quote
from gateway.domain.eip3009 import checksum_address
from gateway.errors import PaymentRequired, TxAlreadyUsed, ValidationError
from gateway.payments import Accepted
from gateway.payments.direct import PayerProof, proof_digest
from gateway.payments.methods import WayToPay
from gateway.running.gateway import Gateway
from gateway.web import bodies, wire
from gateway.web.front.answers import JSON, NOT_STORED, Answer
from gateway.web.front.body_memory import SMALL_BODY_BYTES
from gateway.web.front.routing import Asked, Route
from gateway.web.validation import (
    check_idempotency_key,
    check_request,
    check_size,
    decode,
    decode_generation,
    read_sent,
)

# The rate limit of requests without a payment.
PRICE_LIMIT = "price"
# A prompt of 10,000 characters as JSON, all of them escaped.
_ESCAPED_BODY_BYTES = SMALL_BODY_BYTES + 120_000
# A file of 7.5 MB in Base64, and a prompt.
_LARGE_BODY_BYTES = 11_000_000
# Browsers get another answer to GET than programs.
_BY_READER = {"Vary": "Accept, User-Agent"}
_log = structlog.get_logger()


async def answer_x402(gateway: Gateway, asked: Asked) -> Answer:
    """Start a generation that a header pays for, such as a signed authorization (spec §4.1).

    Without a payment, return the 402 with the price of this request, or of the endpoint if the body
    is empty, as from crawlers. The request is checked first, so that no buyer pays for one that
    must fail.
    """
    chosen = gateway.payments.methods.choose(asked.header)
    if chosen is not None:
        return await _answer_paid(gateway, asked, *chosen)
    registered = gateway.catalog[asked.part]
    data = await asked.read_body()
    if not data:
        return _answer_price(gateway, gateway.quote(registered.endpoint), asked)
    body = await decode_generation(gateway, registered.endpoint, data)
    digest = await _digest_of(gateway, data)
    # Otherwise a file stays in memory twice during checks, which take seconds.
    del data
    check_idempotency_key(asked.header("Idempotency-Key"))
    generation = await check_request(gateway, body, registered, asked.address)
    quote = gateway.quote(registered.endpoint, generation, body_digest=digest)
    return _answer_price(gateway, quote, asked)


async def _answer_paid(gateway: Gateway, asked: Asked, way: WayToPay, payment: str) -> Answer:
    """Return the task of a payment on record, else sell. The endpoint may be gone by now."""
    slug, quote, key = asked.part, None, asked.header("Idempotency-Key")
    body, size_bytes, digest = await _read_paid_body(gateway, asked)
    check_idempotency_key(key)
    sent = await read_sent(gateway, body, slug, digest)

    async def buy(refusal: PaymentRequired | None) -> Accepted:
        nonlocal quote
        registered = gateway.catalog.payable(slug)
        check_size(body, size_bytes, registered.endpoint)
        generation = await check_request(gateway, body, registered, asked.address)
        quote = gateway.quote(registered.endpoint, generation, body_digest=digest)
        return await gateway.payments.accept(
            way, quote, generation, payment, key, sent, is_unknown=refusal is None
        )

    find = functools.partial(gateway.payments.find, way, sent, payment, key)
    try:
        accepted = await gateway.payments.find_or_buy(find, buy)
    except PaymentRequired as refusal:
        # Raises `NotFound` for one that is removed: a 402 would offer it again.
        on_sale = gateway.catalog[slug]
        quote = quote or gateway.quote(on_sale.endpoint)
        refused = make_challenge(gateway, quote, refusal.reason, _read_version(asked), way)
        more = _describe_refusal(gateway, refusal, way)
        return _answer_challenge(attrs.evolve(refused, body={**refused.body, **more}))
    return _answer_started(gateway, accepted, body)


def _describe_refusal(gateway: Gateway, refusal: PaymentRequired, way: WayToPay) -> dict[str, Any]:
    """Return further members of the 402 that refuses a payment.

    `charged` is false if this payment took nothing, and missing if that is unknown. A used
    authorization may have paid before, and of a payment method's proof the gateway knows nothing.
    """
    is_readable = gateway.payments.methods.method_of(way) is None and refusal.reason != SPENT
    uncharged = {"charged": False} if is_readable and refusal.is_uncharged else {}
    return uncharged | ({"details": refusal.details} if refusal.details else {})


async def _read_paid_body(gateway: Gateway, asked: Asked) -> tuple[bodies.GenerationBody, int, str]:
    """Return the decoded body, its size in bytes, and its digest.

    Raises `NotFound` for an unreadable body to an endpoint that is not on sale.
    """
    # The bytes have no name after this: otherwise a file stays in memory twice during the checks.
    try:
        data = await asked.read_body()
        body = await decode(gateway, bodies.GenerationBody, data)
    except ValidationError:
        # No payment can be looked up, so the slug counts first.
        gateway.catalog[asked.part]
        raise
    return body, len(data), await _digest_of(gateway, data)


async def answer_price(gateway: Gateway, asked: Asked) -> Answer:
    """Answer GET as a POST without body and payment; redirect browsers to the endpoint's page.

    Health checkers and crawlers use GET. A payment with GET is refused, because it buys nothing.
    """
    registered = gateway.catalog[asked.part]
    if gateway.payments.methods.is_paid(asked.header):
        raise MethodNotAllowed(valid_methods=["POST"])
    # x402's own middleware detects browsers in the same way.
    is_html = "text/html" in (asked.header("Accept") or "")
    if is_html and "Mozilla" in (asked.header("User-Agent") or ""):
        page = {"Location": f"/play/{asked.part}"}
        return Answer(303, b"", {**page, **_BY_READER, **NOT_STORED})
    answer = _answer_price(gateway, gateway.quote(registered.endpoint), asked)
    return attrs.evolve(answer, headers={**answer.headers, **_BY_READER})


def _name_limit(gateway: Gateway, asked: Asked) -> str:
    return "x402" if gateway.payments.methods.is_paid(asked.header) else PRICE_LIMIT


def _max_body_bytes(catalog: Catalog, slug: str) -> int:
    # Off sale too, and of a slug that no plugin has any more: its payment may be on record.
    registered = catalog.find(slug)
    takes_file = registered is None or registered.endpoint.takes_file
    return _LARGE_BODY_BYTES if takes_file else _ESCAPED_BODY_BYTES


async def _digest_of(gateway: Gateway, data: bytes) -> str:
    """Return the digest of a body; empty if no payment method needs it."""
    if not gateway.payments.methods.binds_body:
        return ""
    is_small = len(data) <= SMALL_BODY_BYTES
    return _digest(data) if is_small else await gateway.intake.bodies.run(_digest, data)


def _digest(data: bytes) -> str:
    """Return the SHA-256 of a body in the format of RFC 9530."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


def make_challenge(
    gateway: Gateway,
    quote: Quote,
    reason: str | None,
    version: int = 2,
    refused: WayToPay | None = None,
) -> Challenge:
    """Return the 402 for a quote; raises `ExecutionError` if the wallet must not be paid.

    `refused` is the payment method whose payment was refused for `reason`.
    """
    # A buyer who knows the price may pay by a direct transfer, which the gateway cannot stop.
    gateway.wallet.check_known()
    if reason is None:
        # From the last check: an unpaid request causes no call to the chain.
        if quote.selling != "everything":
            reason = gateway.sale_problem(quote.endpoint.slug)
        if quote.selling == "transfers":
            reason = f"{reason} {_explain_transfer(quote, gateway.settings.base_url)}"
    challenge = gateway.payments.methods.challenge(quote, reason, version, refused)
    if quote.selling != "transfers":
        return challenge
    return attrs.evolve(challenge, body={**challenge.body, "transfer": _write_transfer(quote)})


def _write_transfer(quote: Quote) -> dict[str, str]:
    """Return the transfer that pays a quote, for programs; the sentence says the same."""
    return {
        "amount": str(quote.price_units),
        "payTo": quote.wallet,
        "asset": checksum_address(quote.network.token),
        "network": quote.network.caip2,
    }


def _explain_transfer(quote: Quote, base_url: str) -> str:
    """Return how to pay by a transfer, for a buyer who reads only this sentence."""
    network = quote.network
    notice = f" {network.notice}" if network.notice else ""
    return (
        f"Send {wire.decimal(quote.price_units)} {network.money} on {network.name} to "
        f"{quote.wallet}, then its hash as txHash to {base_url}/api/proxy-generate, with "
        "payerSignature (/llms.txt says how to sign): a hash is public, and without that signature "
        f"the first client to send it gets the task.{notice}"
    )


def _answer_price(gateway: Gateway, quote: Quote, asked: Asked) -> Answer:
    return _answer_challenge(make_challenge(gateway, quote, None, _read_version(asked)))


def _read_version(asked: Asked) -> int:
    """Return the x402 version whose entry comes first."""
    return 1 if asked.query("x402Version", "2") == "1" else 2


def _answer_challenge(challenge: Challenge) -> Answer:
    return Answer(402, challenge.encoded, {**JSON, **challenge.headers, **NOT_STORED})


async def answer_direct(gateway: Gateway, asked: Asked) -> Answer:
    """Start a generation paid for by an earlier USDC transfer (spec §4.2)."""
    # The bytes have no name here: otherwise a file stays in memory twice during the checks.
    body = await decode(gateway, bodies.DirectBody, await asked.read_body())
    key = check_idempotency_key(asked.header("Idempotency-Key"))
    sent, tx_hash = await read_sent(gateway, body, body.slug), body.tx_hash.lower()

    async def buy(_: object) -> Accepted:
        _check_has_signature(gateway, body)
        registered = gateway.catalog.payable(body.slug)
        generation = await check_request(gateway, body, registered, asked.address)
        quote = gateway.quote(registered.endpoint, generation)
        proof = await _read_payer_proof(gateway, body, quote)
        return await gateway.payments.accept_direct(quote, generation, tx_hash, key, proof, sent)

    find = functools.partial(gateway.payments.find_transfer, sent, tx_hash, key)
    try:
        accepted = await gateway.payments.find_or_buy(find, buy)
    except TxAlreadyUsed:
        if not await gateway.payments.has_paid_for(tx_hash, body.slug):
            # Raises `NotFound` first for a slug that is not on sale.
            gateway.catalog[body.slug]
        raise
    return _answer_started(gateway, accepted, body)


def _check_has_signature(gateway: Gateway, body: bodies.DirectBody) -> None:
    if gateway.settings.require_payer_signature and body.payer_signature is None:
        raise ValidationError(
            "payerSignature is missing. This gateway takes a transfer only with its sender's "
            "signature; GET /llms.txt says how to sign."
        )


async def _read_payer_proof(
    gateway: Gateway, body: bodies.DirectBody, quote: Quote
) -> PayerProof | None:
    """Return `payerSignature` with the digest that it must sign."""
    if body.payer_signature is None:
        return None
    if body.file is None:
        request_hash = bodies.request_hash(body)
    else:
        # This hashes the file.
        request_hash = await gateway.intake.bodies.run(bodies.request_hash, body)
    return PayerProof(
        digest=proof_digest(quote, body.tx_hash, request_hash),
        signature=bytes.fromhex(body.payer_signature[2:]),
    )


def _answer_started(gateway: Gateway, accepted: Accepted, body: bodies.GenerationBody) -> Answer:
    headers = {**JSON, **NOT_STORED, **accepted.headers}
    callback_secret = None
    if body.callback_url and gateway.callbacks is not None:
        try:
            callback_secret = gateway.callbacks.secret_of(accepted.task.id)
        except Exception:  # noqa: BLE001 - a plugin may raise anything, and the task is paid for
            _log.exception("part.failed", part="callbacks", step="secret_of")
    return Answer(200, wire.encode(wire.started(accepted.task, callback_secret)), headers)


ROUTES = (
    Route(
        method="POST",
        rule="/api/x402/<slug>",
        answer=answer_x402,
        limit=_name_limit,
        body_bytes=_max_body_bytes,
        skips_quart=True,
        plain_query=re.compile(rb"x402Version=[12]"),
    ),
    Route(method="GET", rule="/api/x402/<slug>", answer=answer_price, limit=_name_limit),
    Route(
        method="POST",
        rule="/api/proxy-generate",
        answer=answer_direct,
        limit="direct",
        body_bytes=lambda _catalog, _part: _LARGE_BODY_BYTES,
        skips_quart=True,
    ),
)
