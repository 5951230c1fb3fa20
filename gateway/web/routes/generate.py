"""The two routes that sell: a request and a payment in, a task out."""

import asyncio
from typing import Any, TypeVar, cast

import attrs
import structlog
from quart import Blueprint, Response, request

from gateway.contracts import Quote, Validating
from gateway.domain import Endpoint, GenerationRequest
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
from gateway.plugins.calls import call_plugin
from gateway.plugins.catalog import Registered
from gateway.redaction import hide_prompt
from gateway.web import wire
from gateway.web.body_memory import SMALL_BODY_BYTES
from gateway.web.limited import limited
from gateway.web.services import services

blueprint = Blueprint("generate", __name__)
_log = structlog.get_logger()

ESCAPED_BODY_BYTES = SMALL_BODY_BYTES + 120_000  # ASCII-only JSON writes an emoji in 12 bytes
LARGE_BODY_BYTES = 11_000_000  # a file of 7.5 MB in Base64, and a prompt
_MAX_KEY_CHARS = 255
_VALIDATION_S = 30.0  # a large document that is looked at, behind others
Body = TypeVar("Body", bound=wire.GenerationBody)


def _x402_limit() -> str:
    """Return the limit that a request counts towards: without a payment it asks for the price."""
    return "price" if _payment_header() is None else "x402"


@blueprint.post("/api/x402/<slug>")
@limited(_x402_limit)
async def generate_x402(slug: str) -> Response:
    """Start a generation paid for by a signed authorization (spec §4.1)."""
    gateway = services()
    registered = gateway.catalog[slug]
    header = _payment_header()
    data = await _body()
    if header is None and not data:  # crawlers and price probes see the price
        return await _challenge(gateway.quote(registered.endpoint), None)
    body = await _read(wire.GenerationBody, data)
    if not registered.endpoint.takes_file:
        _check_small(body, len(data))
    del data  # settling takes seconds, and a file would be in memory twice
    key = _idempotency_key()
    generation = await _checked(body, registered)
    quote = gateway.quote(registered.endpoint, generation)
    if header is None:
        return await _challenge(quote, None)
    try:
        accepted = await gateway.payments.accept_x402(quote, generation, header, key)
    except PaymentRequired as refusal:
        return await _challenge(quote, refusal.reason)
    return await _started(accepted)


@blueprint.post("/api/proxy-generate")
@limited("direct")
async def generate_direct() -> Response:
    """Start a generation paid for by an earlier USDC transfer (spec §4.2)."""
    gateway = services()
    body = await _read(wire.DirectBody, await _body())
    if gateway.settings.require_payer_signature and body.payer_signature is None:
        raise ValidationError(
            "payerSignature is missing: this gateway takes a transfer only with its sender's "
            "signature. /llms.txt says how to sign."
        )
    registered = gateway.catalog[body.slug]
    generation = await _checked(body, registered)
    quote = gateway.quote(registered.endpoint, generation)
    proof = await _payer_proof(body, quote)
    accepted = await gateway.payments.accept_direct(
        quote, generation, body.tx_hash.lower(), _idempotency_key(), proof
    )
    return await _started(accepted)


async def _payer_proof(body: wire.DirectBody, quote: Quote) -> PayerProof | None:
    """Return the body's `payerSignature` with what it must sign."""
    if body.payer_signature is None:
        return None
    if body.file is None:
        request_hash = wire.request_hash(body)
    else:  # hashes the file
        request_hash = await services().bodies.run(wire.request_hash, body)
    return PayerProof(
        digest=proof_digest(quote, body.tx_hash, request_hash),
        signature=bytes.fromhex(body.payer_signature[2:]),
    )


def _payment_header() -> str | None:
    """Return the payment header, whichever of its names the client used."""
    names = services().payments.authorizations.header_names
    return next((value for name in names if (value := request.headers.get(name))), None)


def _idempotency_key() -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= _MAX_KEY_CHARS:
        raise ValidationError("Idempotency-Key must have 1 to 255 characters.")
    return key


async def _body() -> bytes:
    """Return the request's body; its size is limited by the app's request class."""
    data = cast(bytes, await request.get_data(cache=False, as_text=False))
    if data and request.mimetype not in ("", "application/json"):
        raise ValidationError("Content-Type must be application/json.")
    return data


async def _read(kind: type[Body], data: bytes) -> Body:
    """Decode a body; a large one in a thread, since it would hold up everybody else."""
    if len(data) <= SMALL_BODY_BYTES:
        return wire.read(kind, data)
    return await services().bodies.run(wire.read, kind, data)


def _check_small(body: wire.GenerationBody, size: int) -> None:
    """Refuse what is over 64 KB, however a client's JSON wrote the prompt's characters."""
    if size - 12 * len(body.prompt or "") > SMALL_BODY_BYTES:
        raise PayloadTooLarge("The body is too large.")


async def _checked(body: wire.GenerationBody, registered: Registered) -> GenerationRequest:
    """Return the request once endpoint and provider have nothing against it."""
    hide_prompt(body.prompt)
    endpoint = registered.endpoint
    if body.file is None:
        generation = wire.request_of(body, endpoint)
    else:  # hashes the file
        generation = await services().bodies.run(wire.request_of, body, endpoint)
    provider = registered.upstream.provider
    try:
        async with asyncio.timeout(_VALIDATION_S):  # also of the waiting behind strangers' files
            if endpoint.counts_pages and generation.attachment is not None:
                generation = await _counted(generation, endpoint)
            if isinstance(provider, Validating):
                await call_plugin(provider.validate, generation, endpoint)
    except InvalidInput as error:
        raise ValidationError(registered.upstream.error_text(error)) from None
    except GatewayError:
        raise
    except Exception as error:  # a plugin may raise anything
        # Not the message: it may quote what the buyer sent.
        _log.warning("request.not_validated", slug=endpoint.slug, error=type(error).__name__)
        raise ExecutionError("The request cannot be looked at now; nothing was charged.") from error
    return generation


async def _counted(generation: GenerationRequest, endpoint: Endpoint) -> GenerationRequest:
    """Return the request with its document's pages; too many are refused before payment."""
    assert generation.attachment is not None  # noqa: S101 - the caller has looked
    pages = await services().pages.count(generation.attachment)
    if pages is not None and endpoint.max_pages is not None and pages > endpoint.max_pages:
        raise InvalidInput(
            f"The document has {pages:,} pages; this endpoint takes up to {endpoint.max_pages:,}."
        )
    return attrs.evolve(generation, pages=pages)


async def _challenge(quote: Quote, reason: str | None) -> Response:
    # Who reads the price may also pay by a direct transfer, which nothing here can hold back.
    services().wallet.check_known()
    if reason is None:
        reason = services().settlements.obstacles.said  # as last seen: asks nobody
    version = 1 if request.args.get("x402Version") == "1" else 2
    challenge = services().payments.authorizations.challenge(quote, reason, version)
    return await _json(dict(challenge.body), 402, dict(challenge.headers))


async def _started(accepted: Accepted) -> Response:
    return await _json(wire.started(accepted.task), 200, dict(accepted.headers))


async def _json(body: dict[str, Any], status: int, headers: dict[str, str]) -> Response:
    headers |= {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Response(wire.dumps(body), status, headers)
