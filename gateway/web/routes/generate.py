"""The two routes that sell: they take a request with its payment and return a task."""

import asyncio
from typing import Any, TypeVar, cast

import attrs
import structlog
from quart import Blueprint, Response, request

from gateway.contracts import Quote, Validating
from gateway.domain import Attachment, Endpoint, GenerationRequest
from gateway.errors import (
    ExecutionError,
    GatewayError,
    InvalidInput,
    PayloadTooLarge,
    PaymentRequired,
    ValidationError,
)
from gateway.payments import Accepted
from gateway.payments.payer_proof import PayerProof, proof_digest
from gateway.plugins.catalog import Registered
from gateway.redaction import hide_prompt
from gateway.web import wire
from gateway.web.body_memory import SMALL_BODY_BYTES
from gateway.web.rate_limits import limited
from gateway.web.services import services

blueprint = Blueprint("generate", __name__)
_log = structlog.get_logger()

_MAX_KEY_CHARS = 255
# ASCII-only JSON writes an emoji of the prompt in 12 bytes.
_MAX_BYTES_PER_CHAR = 12
ESCAPED_BODY_BYTES = SMALL_BODY_BYTES + 120_000
# A file of 7.5 MB in Base64, and a prompt.
LARGE_BODY_BYTES = 11_000_000
_Body = TypeVar("_Body", bound=wire.GenerationBody)


def _name_limit() -> str:
    """Return the name of the request's limit: without a payment it only asks for the price."""
    return "price" if _read_payment_header() is None else "x402"


@blueprint.post("/api/x402/<slug>")
@limited(_name_limit)
async def generate_x402(slug: str) -> Response:
    """Start a generation paid for by a signed authorization (spec §4.1)."""
    gateway = services()
    registered = gateway.catalog[slug]
    header = _read_payment_header()
    data = await _read_data()
    # Crawlers and programs that compare prices send no body.
    if header is None and not data:
        return await _answer_challenge(gateway.quote(registered.endpoint), None)
    body = await _decode(wire.GenerationBody, data)
    if not registered.endpoint.takes_file:
        _check_size(body, len(data))
    # Settling takes seconds, and a file would be in memory twice.
    del data
    key = _read_idempotency_key()
    generation = await _check_request(body, registered)
    quote = gateway.quote(registered.endpoint, generation)
    if header is None:
        return await _answer_challenge(quote, None)
    try:
        accepted = await gateway.payments.accept_x402(quote, generation, header, key)
    except PaymentRequired as refusal:
        return await _answer_challenge(quote, refusal.reason)
    return await _answer_started(accepted)


@blueprint.post("/api/proxy-generate")
@limited("direct")
async def generate_direct() -> Response:
    """Start a generation paid for by an earlier USDC transfer (spec §4.2)."""
    gateway = services()
    body = await _decode(wire.DirectBody, await _read_data())
    if gateway.settings.require_payer_signature and body.payer_signature is None:
        raise ValidationError(
            "payerSignature is missing. This gateway takes a transfer only with its sender's "
            "signature; GET /llms.txt says how to sign."
        )
    registered = gateway.catalog[body.slug]
    generation = await _check_request(body, registered)
    quote = gateway.quote(registered.endpoint, generation)
    proof = await _read_payer_proof(body, quote)
    accepted = await gateway.payments.accept_direct(
        quote, generation, body.tx_hash.lower(), _read_idempotency_key(), proof
    )
    return await _answer_started(accepted)


async def _read_payer_proof(body: wire.DirectBody, quote: Quote) -> PayerProof | None:
    """Return the body's `payerSignature` with the digest that it must sign."""
    if body.payer_signature is None:
        return None
    if body.file is None:
        request_hash = wire.request_hash(body)
    else:
        # This hashes the file.
        request_hash = await services().bodies.run(wire.request_hash, body)
    return PayerProof(
        digest=proof_digest(quote, body.tx_hash, request_hash),
        signature=bytes.fromhex(body.payer_signature[2:]),
    )


def _read_payment_header() -> str | None:
    """Return the payment header's value; the client may use any of its names."""
    names = services().payments.authorizations.header_names
    return next((value for name in names if (value := request.headers.get(name))), None)


def _read_idempotency_key() -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= _MAX_KEY_CHARS:
        raise ValidationError("Idempotency-Key must have 1 to 255 characters.")
    return key


async def _read_data() -> bytes:
    """Return the request's body; the app's request class limits its size."""
    data = cast(bytes, await request.get_data(cache=False, as_text=False))
    if data and request.mimetype not in ("", "application/json"):
        raise ValidationError("Content-Type must be application/json.")
    return data


async def _decode(kind: type[_Body], data: bytes) -> _Body:
    """Decode a body; a large one in a thread, because it would hold the event loop."""
    if len(data) <= SMALL_BODY_BYTES:
        return wire.read(kind, data)
    return await services().bodies.run(wire.read, kind, data)


def _check_size(body: wire.GenerationBody, size: int) -> None:
    """Refuse a body of over 64 KB; each character of its prompt may be 12 bytes of JSON."""
    if size - _MAX_BYTES_PER_CHAR * len(body.prompt or "") > SMALL_BODY_BYTES:
        raise PayloadTooLarge("The body is too large.")


async def _check_request(body: wire.GenerationBody, registered: Registered) -> GenerationRequest:
    """Return the request after the checks of its endpoint and its provider.

    Raises `ValidationError` where one of them refuses it, and `ExecutionError` where the provider
    cannot check now.
    """
    hide_prompt(body.prompt)
    endpoint = registered.endpoint
    generation = await _make_request(body, endpoint)
    try:
        # The time includes waiting behind other buyers' files.
        async with asyncio.timeout(services().timing.validation_s):
            return await _validate(generation, registered)
    except InvalidInput as error:
        raise ValidationError(registered.upstream.error_text(error)) from None
    except GatewayError:
        raise
    except Exception as error:
        # A plugin may raise anything. The log does not take the message, which may quote what the
        # buyer sent.
        _log.warning("request.not_validated", slug=endpoint.slug, error=type(error).__name__)
        raise ExecutionError(
            "The request cannot be checked now; nothing was charged. Try again later."
        ) from error


async def _make_request(body: wire.GenerationBody, endpoint: Endpoint) -> GenerationRequest:
    if body.file is None:
        return wire.request_of(body, endpoint)
    # This hashes the file.
    return await services().bodies.run(wire.request_of, body, endpoint)


async def _validate(generation: GenerationRequest, registered: Registered) -> GenerationRequest:
    """Return the request with its pages counted, once the provider takes it."""
    endpoint, provider = registered.endpoint, registered.upstream.provider
    if endpoint.counts_pages and generation.attachment is not None:
        generation = await _count_pages(generation, generation.attachment, endpoint)
    if isinstance(provider, Validating):
        await registered.upstream.call(provider.validate, generation, endpoint)
    return generation


async def _count_pages(
    generation: GenerationRequest, attachment: Attachment, endpoint: Endpoint
) -> GenerationRequest:
    """Return the request with its document's pages; raises `InvalidInput` for too many."""
    pages = await services().pages.count(attachment)
    if pages is not None and endpoint.max_pages is not None and pages > endpoint.max_pages:
        raise InvalidInput(
            f"The document has {pages:,} pages; this endpoint takes up to {endpoint.max_pages:,}."
        )
    return attrs.evolve(generation, pages=pages)


async def _answer_challenge(quote: Quote, reason: str | None) -> Response:
    # A buyer that reads the price may also pay by a direct transfer, which the gateway cannot stop.
    services().wallet.check_known()
    if reason is None:
        # The sentence of the last look: an unpaid request causes no call to the chain.
        reason = services().settlements.obstacles.said
    version = 1 if request.args.get("x402Version") == "1" else 2
    challenge = services().payments.authorizations.challenge(quote, reason, version)
    return await _answer_json(dict(challenge.body), 402, dict(challenge.headers))


async def _answer_started(accepted: Accepted) -> Response:
    return await _answer_json(wire.started(accepted.task), 200, dict(accepted.headers))


async def _answer_json(body: dict[str, Any], status: int, headers: dict[str, str]) -> Response:
    headers |= {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Response(wire.dumps(body), status, headers)
