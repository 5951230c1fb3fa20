"""The two routes that sell: they take a request with its payment and return a task."""

import base64
import hashlib
from collections.abc import Coroutine
from typing import Any, cast

import attrs
import structlog
from quart import Blueprint, Response, request
from werkzeug.exceptions import MethodNotAllowed

from gateway.catalog.catalog import Registered
from gateway.contracts import Challenge, Quote
from gateway.domain import GenerationRequest
from gateway.errors import PaymentRequired, ValidationError
from gateway.payments import Accepted
from gateway.payments.methods import WayToPay
from gateway.payments.payer_proof import PayerProof, proof_digest
from gateway.running.gateway import Gateway
from gateway.web import wire
from gateway.web.front.answers import JSON, NOT_STORED, Answer
from gateway.web.front.body_memory import SMALL_BODY_BYTES
from gateway.web.front.clients import address, limited
from gateway.web.front.current import current_gateway
from gateway.web.validation import (
    check_idempotency_key,
    check_request,
    decode,
    decode_generation,
)

blueprint = Blueprint("generate", __name__)

X402_RULE, DIRECT_RULE = "/api/x402/<slug>", "/api/proxy-generate"
X402_LIMIT, DIRECT_LIMIT = "x402", "direct"
# The limit of requests that only ask for the price.
PRICE_LIMIT = "price"
# The most bytes of JSON for one prompt of 10,000 characters, all of them escaped.
ESCAPED_BODY_BYTES = SMALL_BODY_BYTES + 120_000
# A file of 7.5 MB in Base64, and a prompt.
LARGE_BODY_BYTES = 11_000_000
# Programs and browsers get different answers to GET.
_BY_READER = {"Vary": "Accept, User-Agent"}
_log = structlog.get_logger()


def _name_limit() -> str:
    """Return the name of the request's limit: without a payment it only asks for the price."""
    return X402_LIMIT if _is_paid() else PRICE_LIMIT


@blueprint.post(X402_RULE)
@limited(_name_limit)
async def generate_x402(slug: str) -> Response:
    """Start a generation that a header pays for: by a signed authorization (spec §4.1) or else."""
    gateway = current_gateway()
    registered = gateway.catalog[slug]
    chosen = gateway.payments.methods.choose(request.headers.get)
    key, version = request.headers.get("Idempotency-Key"), _read_version()
    asked = AskedPrice(registered, address(), key, version)
    # The body's bytes have no name here: settling takes seconds, and a file would be in memory
    # twice for as long.
    return (await answer_x402(gateway, asked, await _read_data(), chosen)).to_response()


@blueprint.get(X402_RULE)
@limited(_name_limit)
async def show_price(slug: str) -> Response:
    """Answer GET and HEAD as a POST without body and payment; send people to the endpoint's page.

    Checkers and crawlers ask by GET. A GET buys nothing, so a payment with it is refused.
    """
    gateway = current_gateway()
    registered = gateway.catalog[slug]
    if _is_paid():
        raise MethodNotAllowed(valid_methods=["POST"])
    if _is_browser():
        return Response(b"", 303, {"Location": f"/play/{slug}", **_BY_READER, **NOT_STORED})
    version = _read_version()
    challenge = make_challenge(gateway, gateway.quote(registered.endpoint), None, version)
    answer = _answer_challenge(challenge).to_response()
    answer.headers.extend(_BY_READER)
    return answer


def _is_browser() -> bool:
    """Whether a person's browser asks, by the signs that x402's own middleware goes by."""
    asked = request.headers
    return "text/html" in asked.get("Accept", "") and "Mozilla" in asked.get("User-Agent", "")


def _read_version() -> int:
    """Return the version of x402 whose entry the client wants first."""
    return 1 if request.args.get("x402Version") == "1" else 2


@attrs.frozen
class AskedPrice:
    """A request to an endpoint, without its body."""

    registered: Registered
    # What the client is counted by.
    address: str
    # The value of `Idempotency-Key`.
    key: str | None
    # The version of x402.
    version: int


def answer_x402(
    gateway: Gateway, asked: AskedPrice, data: bytes, chosen: tuple[WayToPay, str] | None
) -> Coroutine[Any, Any, Answer]:
    """Return what answers a request with the payment that its headers chose, if there is one.

    `data` is the body. It raises what the checks raise, and what `Payments.accept` raises but
    `PaymentRequired`.
    """
    if chosen is None:
        return answer_unpaid(gateway, asked, data)
    return _answer_paid(gateway, asked, data, chosen)


async def _answer_paid(
    gateway: Gateway, asked: AskedPrice, data: bytes, chosen: tuple[WayToPay, str]
) -> Answer:
    body, digest = await _read_body(gateway, asked.registered, data)
    # Settling takes seconds, and a file would be in memory twice for as long.
    del data
    quote, generation = await _quote_request(gateway, asked, body, digest)
    way, payment = chosen
    try:
        accepted = await gateway.payments.accept(way, quote, generation, payment, asked.key)
    except PaymentRequired as refusal:
        refused = make_challenge(gateway, quote, refusal.reason, asked.version, way)
        if refusal.details:
            said = {**refused.body, "details": refusal.details}
            refused = attrs.evolve(refused, body=said)
        return _answer_challenge(refused)
    return _answer_started(gateway, accepted, generation)


async def answer_unpaid(gateway: Gateway, asked: AskedPrice, data: bytes) -> Answer:
    """Return the 402 with the price of a request; of an empty body, with the endpoint's own price.

    `data` is the body. Raises what the checks raise: nobody pays for a request that is doomed.
    """
    # Crawlers and programs that compare prices send no body.
    if not data:
        quote = gateway.quote(asked.registered.endpoint)
        return _answer_challenge(make_challenge(gateway, quote, None, asked.version))
    body, digest = await _read_body(gateway, asked.registered, data)
    # A file would be in memory twice while its pages are counted.
    del data
    quote, _ = await _quote_request(gateway, asked, body, digest)
    return _answer_challenge(make_challenge(gateway, quote, None, asked.version))


async def _read_body(
    gateway: Gateway, registered: Registered, data: bytes
) -> tuple[wire.GenerationBody, str]:
    """Return the decoded body and its digest, which is empty where no way to pay binds to it."""
    body, digest = await decode_generation(gateway, registered.endpoint, data), ""
    if gateway.payments.methods.binds_body:
        is_small = len(data) <= SMALL_BODY_BYTES
        digest = _digest(data) if is_small else await gateway.intake.bodies.run(_digest, data)
    return body, digest


def _digest(data: bytes) -> str:
    """Return the SHA-256 of a body as RFC 9530 writes it."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


async def _quote_request(
    gateway: Gateway, asked: AskedPrice, body: wire.GenerationBody, digest: str
) -> tuple[Quote, GenerationRequest]:
    """Return the checked request and its price."""
    check_idempotency_key(asked.key)
    generation = await check_request(gateway, body, asked.registered, asked.address)
    quote = gateway.quote(asked.registered.endpoint, generation)
    return attrs.evolve(quote, body_digest=digest) if digest else quote, generation


def make_challenge(
    gateway: Gateway,
    quote: Quote,
    reason: str | None,
    version: int = 2,
    refused: WayToPay | None = None,
) -> Challenge:
    """Return the 402 for a quote; raises `ExecutionError` where the wallet must not be paid.

    `refused` is the way to pay whose payment was refused for the reason.
    """
    # A buyer that reads the price may also pay by a direct transfer, which the gateway cannot stop.
    gateway.wallet.check_known()
    if reason is None:
        # As known at the last look: an unpaid request causes no call to the chain.
        if quote.selling != "everything":
            reason = gateway.unsold_because(quote.endpoint.slug)
        if quote.selling == "transfers":
            reason = f"{reason} {_explain_transfer(gateway, quote)}"
    return gateway.payments.methods.challenge(quote, reason, version, refused)


def _explain_transfer(gateway: Gateway, quote: Quote) -> str:
    return (
        f"Send {wire.decimal(quote.price_units)} USDC on {quote.network.name} to {quote.wallet}, "
        f"then its hash as txHash to {gateway.settings.base_url}/api/proxy-generate."
    )


def _answer_challenge(challenge: Challenge) -> Answer:
    return Answer(402, challenge.encoded, {**JSON, **challenge.headers, **NOT_STORED})


@blueprint.post(DIRECT_RULE)
@limited(DIRECT_LIMIT)
async def generate_direct() -> Response:
    """Start a generation paid for by an earlier USDC transfer (spec §4.2)."""
    key = request.headers.get("Idempotency-Key")
    # The body's bytes have no name here, as above.
    answer = await answer_direct(current_gateway(), await _read_data(), key, address())
    return answer.to_response()


async def answer_direct(gateway: Gateway, data: bytes, key: str | None, client: str) -> Answer:
    """Return the task that a transfer pays for; `key` is the value of `Idempotency-Key`.

    `client` is the address by which the client is counted.

    Raises what the checks raise, and what `Payments.accept_direct` raises.
    """
    body = await decode(gateway, wire.DirectBody, data)
    # Looking at the chain takes a while, and a file would be in memory twice for as long.
    del data
    if gateway.settings.require_payer_signature and body.payer_signature is None:
        raise ValidationError(
            "payerSignature is missing. This gateway takes a transfer only with its sender's "
            "signature; GET /llms.txt says how to sign."
        )
    registered = gateway.catalog[body.slug]
    generation = await check_request(gateway, body, registered, client)
    quote = gateway.quote(registered.endpoint, generation)
    proof = await _read_payer_proof(gateway, body, quote)
    accepted = await gateway.payments.accept_direct(
        quote, generation, body.tx_hash.lower(), check_idempotency_key(key), proof
    )
    return _answer_started(gateway, accepted, generation)


async def _read_payer_proof(
    gateway: Gateway, body: wire.DirectBody, quote: Quote
) -> PayerProof | None:
    """Return the body's `payerSignature` with the digest that it must sign."""
    if body.payer_signature is None:
        return None
    if body.file is None:
        request_hash = wire.request_hash(body)
    else:
        # This hashes the file.
        request_hash = await gateway.intake.bodies.run(wire.request_hash, body)
    return PayerProof(
        digest=proof_digest(quote, body.tx_hash, request_hash),
        signature=bytes.fromhex(body.payer_signature[2:]),
    )


def _is_paid() -> bool:
    return current_gateway().payments.methods.is_paid(request.headers.get)


async def _read_data() -> bytes:
    """Return the request's body; the app's request class limits its size."""
    data = cast(bytes, await request.get_data(cache=False, as_text=False))
    if data and request.mimetype not in ("", "application/json"):
        raise ValidationError("Content-Type must be application/json.")
    return data


def _answer_started(gateway: Gateway, accepted: Accepted, generation: GenerationRequest) -> Answer:
    headers = {**JSON, **NOT_STORED, **accepted.headers}
    body = wire.started(accepted.task, _callback_secret(gateway, accepted, generation))
    return Answer(200, wire.dumps(body).encode(), headers)


def _callback_secret(
    gateway: Gateway, accepted: Accepted, generation: GenerationRequest
) -> str | None:
    """Return the secret that signs the events of a task; None if the request asks for none."""
    if gateway.callbacks is None or not generation.callback_url:
        return None
    try:
        return gateway.callbacks.secret_of(accepted.task.id)
    except Exception:  # noqa: BLE001 - a plugin may raise anything, and the task is paid for
        _log.exception("part.failed", part="callbacks", step="secret_of")
        return None
