"""Tool calls: arguments, price, payment, and the task that a call starts.

A call is handled like `POST /api/x402/{slug}`: the same checks in the same order, and the same
`accept_x402`, so that a repeated payment returns the same task.
"""

import asyncio
import contextlib
import functools
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs
import msgspec
import structlog

from gateway.catalog.registered import Registered
from gateway.contracts import Quote
from gateway.domain import MAX_FILE_BYTES
from gateway.errors import ExecutionError, GatewayError, PaymentRequired, ValidationError
from gateway.payments import Accepted
from gateway.running.gateway import Gateway
from gateway.telemetry.redaction import hide_prompt
from gateway.web import bodies, wire
from gateway.web.routes.generate import PRICE_LIMIT, make_challenge
from gateway.web.routes.tasks import TASK_LIMIT, poll_task, read_wait_s
from gateway.web.validation import check_request, check_size, decode, read_sent
from gateway_mcp.payment import (
    ask_for_payment,
    describe_page,
    is_paid,
    read_payment,
    receipt_meta,
)
from gateway_mcp.results import show_error, show_task, show_unreadable_purchase
from gateway_mcp.sdk_server import Incoming, SdkServer
from gateway_mcp.task_handles import describe_new_task
from gateway_mcp.tools import GET_TASK, find_slug_off_sale, slugs_of_tools

MCP_PATH = "/mcp"
# Clients time out after a minute. Seconds after a call arrived: a payment is not taken after the
# first, because its settlement may take 20 more; the call waits for its task until the second, for
# no longer than the third.
_PAY_BY_S = 35.0
_WAIT_UNTIL_S = 45.0
_WAIT_S = 20.0
_ON_RECORD = (
    "This payment is on record and is not taken again: its task is shown once the file can be "
    "fetched."
)
_log = structlog.get_logger()


@attrs.frozen(kw_only=True)
class ToolCall:
    """One `tools/call`."""

    name: str
    arguments: Mapping[str, Any]
    # The `_meta` of its parameters.
    meta: Mapping[str, Any]
    # Whether the client accepts a task instead of a result.
    takes_tasks: bool
    incoming: Incoming


async def answer_call(gateway: Gateway, call: ToolCall) -> dict[str, Any] | None:
    """Return the result of a call, possibly an error; None for an unknown tool."""
    if call.name == GET_TASK:
        answer = _show
    elif call.name in slugs_of_tools(gateway.catalog) or is_paid(call.meta):
        answer = _sell
    else:
        return None
    try:
        return await answer(gateway, call)
    except Exception as error:  # noqa: BLE001 - as over HTTP, every error has a response
        return show_error(gateway, error, MCP_PATH)


# -- the free tool


async def _show(gateway: Gateway, call: ToolCall) -> dict[str, Any] | None:
    await gateway.limits.hit(TASK_LIMIT, call.incoming.address)
    task_id = call.arguments.get("taskId")
    if not isinstance(task_id, str):
        raise ValidationError("taskId must be a string.")
    wait_s = read_wait_s(str(call.arguments.get("wait", 0)))
    task, links = await poll_task(gateway, task_id, wait_s, call.incoming.address)
    return await show_task(gateway, task, links, call.incoming.admit_pictures)


# -- the tools that sell


async def _find_slug(gateway: Gateway, call: ToolCall) -> str | None:
    """Return the slug of a tool on sale, or of one whose payment may be on record."""
    if slug := slugs_of_tools(gateway.catalog).get(call.name):
        return slug
    paid_slug = None
    with contextlib.suppress(PaymentRequired):
        if (header := read_payment(call.meta)) is not None:
            paid_slug = await gateway.payments.find_slug(gateway.settings.chain, header)
    return find_slug_off_sale(gateway.catalog, call.name, paid_slug)


async def _sell(gateway: Gateway, call: ToolCall) -> dict[str, Any] | None:
    if not call.incoming.is_counted:
        limit = "x402" if is_paid(call.meta) else PRICE_LIMIT
        await gateway.limits.hit(limit, call.incoming.address)
    if (slug := await _find_slug(gateway, call)) is None:
        return None
    try:
        header = read_payment(call.meta)
        if header is not None:
            return await _sell_paid(gateway, slug, call, header)
        return await _ask_price(gateway, gateway.catalog[slug], call)
    except PaymentRequired as refusal:
        # The payment cannot be read, so the request was not.
        return _ask(gateway, call, gateway.quote(gateway.catalog[slug].endpoint), refusal.reason)


async def _ask_price(gateway: Gateway, registered: Registered, call: ToolCall) -> dict[str, Any]:
    endpoint = registered.endpoint
    asked, size_bytes = await _read_arguments(gateway, call, takes_file=endpoint.takes_file)
    check_size(asked.body, size_bytes, endpoint)
    if asked.url is not None:
        quote = gateway.quote(endpoint, bodies.request_without_file(asked.body, endpoint))
        if not endpoint.prices_file:
            # The price is known, so the file is not fetched before there is a payment.
            return _ask(gateway, call, quote, None)
    body = await _fetch(gateway, asked, call.incoming)
    request = await check_request(gateway, body, registered, call.incoming.address)
    return _ask(gateway, call, gateway.quote(endpoint, request), None)


async def _sell_paid(gateway: Gateway, slug: str, call: ToolCall, header: str) -> dict[str, Any]:
    """Return the task of a payment on record, else sell. The endpoint may be gone by now."""
    payments, registered = gateway.payments, gateway.catalog.find(slug)
    takes_file = registered is None or registered.endpoint.takes_file
    asked, size_bytes = await _read_arguments(gateway, call, takes_file=takes_file)
    body = await _fetch_paid(gateway, slug, asked, call.incoming, header)
    sent = await read_sent(gateway, body, slug)
    quote = sent.quote

    async def buy(refusal: PaymentRequired | None) -> Accepted:
        nonlocal quote
        # Raises if the endpoint is switched off or retired.
        on_sale = gateway.catalog.payable(slug)
        check_size(body, size_bytes, on_sale.endpoint)
        request = await check_request(gateway, body, on_sale, call.incoming.address)
        quote = gateway.quote(on_sale.endpoint, request)
        _check_time_left(gateway, call)
        return await payments.accept_x402(
            quote, request, header, None, None, sent, is_unknown=refusal is None
        )

    try:
        find = functools.partial(payments.find_x402, sent, header)
        accepted = await payments.find_or_buy(find, buy)
    except PaymentRequired as refusal:
        # Raises for one that is removed: it is not offered again.
        gateway.catalog[slug]
        return _ask(gateway, call, quote, refusal.reason, refusal.details)
    return await _show_purchase(gateway, accepted, call)


def _ask(
    gateway: Gateway, call: ToolCall, quote: Quote, reason: str | None, details: str | None = None
) -> dict[str, Any]:
    """Return the result that states the price, with the reason if a payment was refused."""
    here = attrs.evolve(quote, resource_url=gateway.settings.base_url + MCP_PATH)
    price = f"{wire.decimal(quote.price_units)} {quote.network.money} on {quote.network.name}"
    page = describe_page(gateway, quote.endpoint, call.arguments)
    refund = quote.refund.sentence if quote.refund is not None else ""
    more = (refund, quote.network.notice)
    return ask_for_payment(make_challenge(gateway, here, reason), price, page, details, more)


def _check_time_left(gateway: Gateway, call: ToolCall) -> None:
    """Raise `ExecutionError` if the client may time out before its payment is settled."""
    if gateway.now() - call.incoming.received_at > _PAY_BY_S:
        raise ExecutionError(
            "The file or its check took too long to answer a payment in time. Please send it again "
            "with the same payment."
        )


async def _show_purchase(gateway: Gateway, accepted: Accepted, call: ToolCall) -> dict[str, Any]:
    """Return the result of a paid call: the finished task, or a reference to it.

    The money has moved. Even after an error the buyer gets the task's id and the receipt, and has
    no reason to sign another payment.
    """
    try:
        result = await _poll_purchase(gateway, accepted.task.id, call)
    except Exception:  # noqa: BLE001 - a buyer without a response would pay twice
        _log.exception("mcp.response_failed", task=accepted.task.id)
        describe = describe_new_task if call.takes_tasks else show_unreadable_purchase
        result = describe(accepted.task)
    return result | {"_meta": receipt_meta(accepted.headers)}


async def _poll_purchase(gateway: Gateway, task_id: str, call: ToolCall) -> dict[str, Any]:
    """Return a task as a result: at once for clients that accept tasks, else after a wait."""
    left_s = call.incoming.received_at + _WAIT_UNTIL_S - gateway.now()
    wait_s = 0.0 if call.takes_tasks else max(0.0, min(left_s, _WAIT_S))
    async with asyncio.timeout(wait_s + gateway.timing.show_purchase_s):
        task, links = await poll_task(gateway, task_id, wait_s, call.incoming.address)
        if call.takes_tasks and not task.is_done:
            return describe_new_task(task)
        return await show_task(gateway, task, links, call.incoming.admit_pictures)


# -- the arguments


@attrs.frozen
class _Asked:
    """The arguments of a call: a request's body, and the URL of a file to fetch."""

    body: bodies.GenerationBody
    url: str | None


async def _read_arguments(
    gateway: Gateway, call: ToolCall, *, takes_file: bool
) -> tuple[_Asked, int]:
    """Return the arguments, parsed as strictly as a request's body, and their size in bytes.

    Raises `ValidationError`.
    """
    fields, file, url = dict(call.arguments), call.incoming.file, None
    if takes_file:
        url = fields.pop("fileUrl", None)
    if fields.get("callbackUrl") is not None:
        raise ValidationError("callbackUrl works over HTTP only; here, ask get_task for the end.")
    try:
        data = msgspec.json.encode(fields)
    except (ValueError, OverflowError, RecursionError):
        raise ValidationError("The arguments hold a value that JSON cannot hold.") from None
    body = await decode(gateway, bodies.GenerationBody, data)
    hide_prompt(body.prompt)
    if file is not None:
        body = bodies.with_file(body, file, body.file_name)
    if url is None:
        return _Asked(body, None), len(data)
    if not isinstance(url, str):
        raise ValidationError("fileUrl must be a string.")
    if body.file is not None:
        raise ValidationError("Give either fileUrl or fileBase64, not both.")
    return _Asked(attrs.evolve(body, file_name=body.file_name or _name_of(url)), url), len(data)


def _name_of(url: str) -> str:
    """Return the file name in a URL, or an empty text."""
    try:
        return unquote(urlsplit(url).path.rpartition("/")[2])
    except ValueError:
        raise ValidationError("fileUrl is no address.") from None


async def _fetch_paid(
    gateway: Gateway, slug: str, asked: _Asked, incoming: Incoming, header: str
) -> bodies.GenerationBody:
    """Like `_fetch`, for a call with a payment.

    Only the file shows whether a payment on record is for this call. Nothing else protects the
    task, since authorizations are public on the chain.
    """
    if asked.url is None:
        return asked.body
    paid_slug = await gateway.payments.find_slug(gateway.settings.chain, header)
    if paid_slug is None:
        bodies.request_without_file(asked.body, gateway.catalog.payable(slug).endpoint)
    try:
        return await _fetch(gateway, asked, incoming)
    except GatewayError as refusal:
        if paid_slug is not None:
            refusal.message = f"{refusal.message} {_ON_RECORD}"
        raise


async def _fetch(gateway: Gateway, asked: _Asked, incoming: Incoming) -> bodies.GenerationBody:
    """Return the body with the linked file; raises `ValidationError`, `BodiesFull` and others."""
    body, url = asked.body, asked.url
    if url is None:
        return body
    incoming.admit(MAX_FILE_BYTES)
    file = await gateway.find(SdkServer).linked_files.fetch(url, incoming.address)
    return bodies.with_file(body, file, body.file_name)
