"""Checks a generation request before its payment: body, endpoint, file, provider.

`read_sent` comes before all checks but those of the body's format: by its result a payment on
record is looked up (`Payments.find_or_buy`).
"""

import asyncio
import contextlib
from typing import TypeVar

import attrs
import structlog

from gateway.catalog.earlier import offers_choices
from gateway.catalog.fallbacks import fill_defaults
from gateway.catalog.registered import Registered
from gateway.concurrency.awaiting import EagerStart
from gateway.domain import Endpoint, FileKind, GenerationRequest, UnitPrice
from gateway.domain.kinds import CORE_FILES
from gateway.errors import (
    ExecutionError,
    GatewayError,
    InvalidInput,
    PayloadTooLarge,
    ValidationError,
)
from gateway.payments.sent import SentRequest
from gateway.running.gateway import Gateway
from gateway.telemetry.redaction import hide_prompt
from gateway.web import bodies
from gateway.web.front.body_memory import SMALL_BODY_BYTES

_MAX_KEY_CHARS = 255
# An emoji takes 12 bytes in ASCII-only JSON.
_MAX_BYTES_PER_CHAR = 12
# Of a refusal by a capability.
_MAX_REASON_CHARS = 300
_Body = TypeVar("_Body", bound=bodies.GenerationBody)
_log = structlog.get_logger()


def check_idempotency_key(key: str | None) -> str | None:
    """Return a valid `Idempotency-Key`; raises `ValidationError`."""
    if key is not None and not 1 <= len(key) <= _MAX_KEY_CHARS:
        raise ValidationError("Idempotency-Key must have 1 to 255 characters.")
    return key


def _check_callback(gateway: Gateway, url: str) -> None:
    if gateway.callbacks is None:
        raise ValidationError(
            "This gateway sends no events: leave callbackUrl out, and poll the task."
        )
    gateway.callbacks.check(url)


async def decode(gateway: Gateway, kind: type[_Body], data: bytes) -> _Body:
    """Decode a body, a large one in a thread; raises `ValidationError`."""
    if len(data) <= SMALL_BODY_BYTES:
        return bodies.read(kind, data, gateway.catalog.output_formats)
    formats = gateway.catalog.output_formats
    return await gateway.intake.bodies.run(bodies.read, kind, data, formats)


async def decode_generation(
    gateway: Gateway, endpoint: Endpoint, data: bytes
) -> bodies.GenerationBody:
    """Decode the body of a request to an endpoint; raises `ValidationError`.

    Without a file the body may have 64 KB, not counting 12 bytes for each character of the prompt.
    """
    body = await decode(gateway, bodies.GenerationBody, data)
    check_size(body, len(data), endpoint)
    return body


def check_size(body: bodies.GenerationBody, size_bytes: int, endpoint: Endpoint) -> None:
    """Raise `PayloadTooLarge` for a body that is too large for an endpoint without files."""
    escaped_bytes = _MAX_BYTES_PER_CHAR * len(body.prompt or "")
    if not endpoint.takes_file and size_bytes - escaped_bytes > SMALL_BODY_BYTES:
        raise PayloadTooLarge("The body is too large.")


async def read_sent(
    gateway: Gateway, body: bodies.GenerationBody, slug: str, body_digest: str = ""
) -> SentRequest:
    """Return a request by which its payment is found, even if it would be refused now."""
    hide_prompt(body.prompt)
    if body.file is None:
        return _sent_of(gateway, body, slug, body_digest)
    # This hashes the file.
    return await gateway.intake.bodies.run(_sent_of, gateway, body, slug, body_digest)


def _sent_of(
    gateway: Gateway, body: bodies.GenerationBody, slug: str, body_digest: str
) -> SentRequest:
    registered, request = gateway.catalog.find(slug), None
    if registered is not None:
        with contextlib.suppress(ValidationError):
            request = bodies.request_of(body, registered.endpoint)
            request = attrs.evolve(request, callback_url=body.callback_url)
    return SentRequest(
        slug=slug,
        sent_hash=bodies.sent_hash(body, slug),
        fingerprint="" if request is None else request.fingerprint(slug),
        quote=gateway.lookup_quote(slug, request, body_digest=body_digest),
    )


async def check_request(
    gateway: Gateway, body: bodies.GenerationBody, registered: Registered, address: str
) -> GenerationRequest:
    """Return the request after the checks of its endpoint and its provider.

    `address` is the client's address for rate limits. The provider does not see the callback URL.
    Raises `ValidationError` if a check refuses the request, `ExecutionError` if the provider cannot
    check now, and `TooManyRequests` if the client's files took too much time.
    """
    hide_prompt(body.prompt)
    if body.callback_url is not None:
        _check_callback(gateway, body.callback_url)
    endpoint = registered.endpoint
    if endpoint.declared is not None:
        # A fallback has the same capability.
        await gateway.functions.ensure(endpoint, timeout_s=gateway.timing.validation_s)
    maker = registered.fallback
    if body.file is None:
        generation = bodies.request_of(body, endpoint)
    else:
        # This hashes the file.
        generation = await gateway.intake.bodies.run(bodies.request_of, body, endpoint)
    if generation.prompt and endpoint.reads_prompt:
        _check_prompt(endpoint, generation.prompt)
    if endpoint.unit_price is not None:
        _check_amount(endpoint.unit_price, generation)
    order = _Order(bought=registered, maker=maker or registered)
    if order.reads_files or order.maker.upstream.validating:
        generation = await _check_by_provider(gateway, generation, order, address)
    now = gateway.catalog.payable(endpoint.slug)
    is_same_maker = (now.fallback or now).upstream is order.maker.upstream
    if not is_same_maker or not offers_choices(now.endpoint, generation):
        # The provider that makes it now has not checked the request.
        raise ExecutionError("This endpoint's provider has just changed. Try again.")
    if body.callback_url is None:
        return generation
    return attrs.evolve(generation, callback_url=body.callback_url)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Order:
    """The endpoint that a request orders, and the one that makes it: usually the same."""

    bought: Registered
    maker: Registered

    @property
    def name(self) -> str:
        """The name under which a checked file is remembered; no slug contains the arrow."""
        slug, maker = self.bought.endpoint.slug, self.maker.endpoint.slug
        return slug if maker == slug else f"{slug}>{maker}"

    @property
    def reads_files(self) -> bool:
        """Whether the gateway reads any file before payment, for the price or the provider."""
        if self.maker is self.bought:
            return self.bought.reads_files
        return any(map(self.reads_file, self.bought.endpoint.file_kinds))

    def reads_file(self, kind: FileKind) -> bool:
        """Whether the gateway reads a file of this kind before payment."""
        is_lent = self.maker is not self.bought
        return self.bought.reads_file(kind, is_lent=is_lent) or self.maker.reads_file(kind)

    async def validate(self, generation: GenerationRequest) -> None:
        """Check the rules of the provider that makes it."""
        maker = self.maker.endpoint
        if self.maker is not self.bought:
            generation = fill_defaults(generation, maker)
        await self.maker.upstream.validate(generation, maker)


async def _check_by_provider(
    gateway: Gateway, generation: GenerationRequest, order: _Order, address: str
) -> GenerationRequest:
    slug, upstream = order.bought.endpoint.slug, order.maker.upstream
    try:
        checking = EagerStart(_validate_in_turn(gateway, generation, order, address))
        if checking.is_done:
            return checking.result
        # The timeout includes the wait for other buyers' files.
        async with asyncio.timeout(gateway.timing.validation_s):
            return await checking
    except InvalidInput as error:
        raise ValidationError(upstream.error_text(error)) from None
    except GatewayError:
        raise
    except Exception as error:
        # A plugin may raise anything. Its message may quote the buyer's request and is not logged.
        _log.warning("request.not_validated", slug=slug, error=type(error).__name__)
        raise ExecutionError("The request cannot be checked now. Try again later.") from error


def _check_prompt(endpoint: Endpoint, prompt: str) -> None:
    """Raise `ValidationError` for a prompt that the declaration of a capability refuses."""
    check = endpoint.declaration.prompt.check
    if check is None:
        return
    try:
        check(prompt)
    except ValueError as error:
        raise ValidationError(str(error)[:_MAX_REASON_CHARS]) from None
    except Exception as error:
        # A plugin may raise anything, and a prompt may be nested too deeply for a parser.
        _log.warning("request.not_validated", slug=endpoint.slug, error=type(error).__name__)
        raise ExecutionError("The request cannot be checked now. Try again later.") from error


def _check_amount(price: UnitPrice, generation: GenerationRequest) -> None:
    """Raise `ValidationError` for more units than the endpoint sells, as far as they are known."""
    if generation.measure(price.unit) <= price.most * price.unit.size:
        return
    of = f"The {price.unit.of}"
    amount = generation.measure(price.unit) / price.unit.size
    raise ValidationError(
        f"{of} has {amount:,.10g} {price.unit.plural}; this endpoint takes up to {price.most:,}."
    )


async def _validate_in_turn(
    gateway: Gateway, generation: GenerationRequest, order: _Order, address: str
) -> GenerationRequest:
    """Validate; a file takes a slot, and all addresses share the slots fairly."""
    if generation.attachment is None:
        return await _validate(gateway, generation, order)
    if checked := gateway.intake.checked_files.find(address, order.name, generation):
        return checked
    async with gateway.intake.checks.turn(address):
        checked = await _validate(gateway, generation, order)
    if checked.attachment is generation.attachment:
        # A picture that was put right is put right again, since its bytes take too much memory.
        gateway.intake.checked_files.add(address, order.name, checked)
    return checked


async def _validate(
    gateway: Gateway, generation: GenerationRequest, order: _Order
) -> GenerationRequest:
    """Read the file by its kind, and check the provider's rules."""
    endpoint, attachment = order.bought.endpoint, generation.attachment
    if attachment is not None:
        kind = endpoint.declaration.file_kind(attachment.extension)
        if order.reads_file(kind):
            read = await gateway.intake.read_file(
                kind, attachment, most_bytes=endpoint.max_picture_bytes
            )
            _check_pages(endpoint, read.pages)
            generation = attrs.evolve(generation, attachment=read.attachment, pages=read.pages)
            if kind not in CORE_FILES or endpoint.unit_price is not None:
                # Earlier releases cannot read a stored request with measures, and need none.
                generation = attrs.evolve(generation, measured=read.measured)
            if endpoint.unit_price is not None:
                _check_amount(endpoint.unit_price, generation)
    await order.validate(generation)
    return generation


def _check_pages(endpoint: Endpoint, pages: int | None) -> None:
    if pages is not None and endpoint.max_pages is not None and pages > endpoint.max_pages:
        raise InvalidInput(
            f"The document has {pages:,} pages; this endpoint takes up to {endpoint.max_pages:,}."
        )
