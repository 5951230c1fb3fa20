"""Builds and serves the document, with prices as @agentcash/discovery and x402scan read them.

Sources: the Agentcash Discovery Specification v1.0 (npm @agentcash/discovery, docs) for
`x-payment-info`, `x-guidance` and `x-agentcash-…`; draft-payment-discovery-00 for `x-service-info`.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from quart import Blueprint, Response

from gateway.domain import USDC_DECIMALS, Endpoint
from gateway.domain.description import (
    price_range,
    request_example,
    request_schema,
    started_example,
)
from gateway.running.gateway import Gateway
from gateway.version import VERSION
from gateway.web.front.current import current_gateway
from gateway.web.routes.discovery import keep_document
from gateway_openapi import schemas

# The draft's maximum.
_MAX_CATEGORIES = 5
_GUIDANCE = (
    "POST a JSON body to an /api/x402 path. The 402 tells the price of exactly that request and "
    "costs nothing; sign it with an x402 client ({money} on {network}) and send the same request "
    "again. The 200 has a statusUrl: GET it with ?wait=30 until done is true, then download "
    "result.outputs[].url or read result.text. Send an Idempotency-Key with the first attempt; a "
    "repeat with the same key is the same purchase. {refund}"
)
_REFUSALS = {
    400: "The request breaks a rule.",
    404: "There is nothing under this name.",
    408: "The body did not arrive within 30 seconds.",
    409: "The Idempotency-Key was used with another request.",
    413: "The body or the file is too large.",
    429: "Too many requests from this address.",
    500: "The gateway cannot serve now.",
    503: "Too many large requests are being read, or the gateway restarts.",
}
_PURCHASE_REFUSALS = (400, 404, 408, 409, 413, 429, 500, 503)
_TASK_REFUSALS = (400, 404, 429, 500)
_RETRY_AFTER = {
    "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."},
}
_HAVE_RETRY_AFTER = (429, 503)


def make_blueprint() -> Blueprint:
    """Return the blueprint of the document."""
    blueprint = Blueprint("openapi", __name__)

    @blueprint.get("/openapi.json")
    async def openapi() -> Response:
        return keep_document(current_gateway(), "openapi", describe_api).to_response(
            "application/json"
        )

    return blueprint


def describe_api(gateway: Gateway) -> dict[str, Any]:
    """Return the OpenAPI document of the endpoints on sale."""
    settings, base = gateway.settings, gateway.settings.base_url
    endpoints = list(gateway.catalog)
    proofs = list(settings.ownership_proofs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": settings.name,
            "version": VERSION,
            "description": (
                f"AI generations, each for one payment in {settings.chain.money}. No account, no "
                f"API key. {settings.chain.notice}"
            ).strip(),
            "contact": {"name": settings.name, "url": base}
            | ({"email": settings.contact_email} if settings.contact_email else {}),
            "x-guidance": _guide(gateway),
        },
        "servers": [{"url": base}],
        "x-refund-policy": gateway.refund_promise().describe_in_words(),
        "x-agentcash-guidance": {"llmsTxtUrl": f"{base}/llms.txt"},
        "x-service-info": {
            "categories": _categories(endpoints),
            "docs": {
                "homepage": f"{base}/",
                "llms": f"{base}/llms.txt",
                "apiReference": f"{base}/openapi.json",
            },
        },
        # x402scan documents the second name.
        **({"x-agentcash-provenance": {"ownershipProofs": proofs}} if proofs else {}),
        **({"x-discovery": {"ownershipProofs": proofs}} if proofs else {}),
        "paths": _paths(gateway, endpoints),
        "components": _components(),
    }


def _guide(gateway: Gateway) -> str:
    chain, refund = gateway.settings.chain, gateway.refund_promise().sentence
    guide = _GUIDANCE.format(money=chain.money, network=chain.name, refund=refund)
    return f"{guide} {chain.notice}".strip()


def _categories(endpoints: Iterable[Endpoint]) -> list[str]:
    return ["ai", *sorted({endpoint.capability for endpoint in endpoints})][:_MAX_CATEGORIES]


def _paths(gateway: Gateway, endpoints: list[Endpoint]) -> dict[str, Any]:
    callbacks = _offers_callbacks(gateway)
    paths = {
        f"/api/x402/{one.slug}": {"post": _describe_endpoint(gateway, one, callbacks=callbacks)}
        for one in endpoints
    }
    # Its body names one of the slugs, and a schema cannot have an empty list of them.
    if endpoints:
        paths["/api/proxy-generate"] = {"post": _describe_direct(gateway, endpoints)}
    return paths | {"/api/task/{taskId}": {"get": _describe_task()}}


def _offers_callbacks(gateway: Gateway) -> bool:
    return gateway.callbacks is not None and gateway.callbacks.is_offered


def _describe_endpoint(gateway: Gateway, endpoint: Endpoint, *, callbacks: bool) -> dict[str, Any]:
    return {
        "operationId": endpoint.slug,
        "summary": endpoint.title,
        "description": endpoint.description,
        "tags": [endpoint.capability],
        # States that no API key is needed.
        "security": [],
        "x-payment-info": _describe_payment(gateway, endpoint),
        "parameters": [_IDEMPOTENCY_KEY],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": request_schema(endpoint, callbacks=callbacks),
                    "example": request_example(endpoint),
                }
            },
        },
        "responses": {
            "200": _refer("responses", "Started"),
            "402": _refer("responses", "PaymentRequired"),
            **_refusals(_PURCHASE_REFUSALS),
        },
    }


def _describe_payment(gateway: Gateway, endpoint: Endpoint) -> dict[str, Any]:
    methods = gateway.payments.methods
    protocols = [{"x402": {}}, *methods.payment_info(endpoint, "protocols")]
    offers = methods.payment_info(endpoint, "offers")
    info = {"price": _describe_price([endpoint]), "protocols": protocols}
    return info | ({"offers": offers} if offers else {})


def _describe_direct(gateway: Gateway, endpoints: list[Endpoint]) -> dict[str, Any]:
    settings = gateway.settings
    transfer = {"network": settings.chain.caip2, "asset": settings.chain.token}
    schema = schemas.direct_request_schema(
        endpoints,
        must_sign=settings.require_payer_signature,
        callbacks=_offers_callbacks(gateway),
    )
    return {
        "operationId": "proxy-generate",
        "summary": "Buy with a USDC transfer that was made before",
        "description": "For clients without x402: transfer the price of the endpoint in USDC to "
        "the gateway's wallet, then send the transaction's hash. /llms.txt has the steps.",
        "tags": sorted({endpoint.capability for endpoint in endpoints}),
        "security": [],
        "x-payment-info": {
            "price": _describe_price(endpoints),
            "protocols": [{"usdc-transfer": transfer}],
        },
        "parameters": [_IDEMPOTENCY_KEY],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {
            "200": _refer("responses", "Started"),
            **_refusals(_PURCHASE_REFUSALS),
        },
    }


_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key with the same request is the same purchase.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}


def _describe_price(endpoints: Iterable[Endpoint]) -> dict[str, str]:
    """Return the fixed price of a request to the endpoints, or its bounds."""
    ranges = [price_range(endpoint) for endpoint in endpoints]
    lowest, highest = min(low for low, _ in ranges), max(high for _, high in ranges)
    if lowest == highest:
        return {"mode": "fixed", "currency": "USD", "amount": _dollars(lowest)}
    bounds = {"min": _dollars(lowest), "max": _dollars(highest)}
    return {"mode": "dynamic", "currency": "USD", **bounds}


def _dollars(units: int) -> str:
    """Return an amount in units of 10⁻⁶ USDC as decimal dollars: `0.02`, never `2e-05`."""
    return f"{Decimal(units).scaleb(-USDC_DECIMALS).normalize():f}"


def _describe_task() -> dict[str, Any]:
    return {
        "operationId": "task",
        "summary": "What became of a purchase",
        "description": "Free. With wait=30 the answer comes once the task is done, or after 30 "
        "seconds.",
        "tags": ["task"],
        "security": [],
        "parameters": [
            {"name": "taskId", "in": "path", "required": True, "schema": {"type": "string"}},
            {
                "name": "wait",
                "in": "query",
                "description": "Seconds to wait for the end of the task.",
                "schema": {"type": "number", "minimum": 0, "maximum": 30, "default": 0},
            },
        ],
        "responses": {
            "200": {
                "description": "The task; as a stream of events where the client accepts one.",
                "content": {
                    **_json(_refer("schemas", "Task")),
                    "text/event-stream": {"schema": {"type": "string"}},
                },
            },
            **_refusals(_TASK_REFUSALS),
        },
    }


def _refusals(statuses: Iterable[int]) -> dict[str, Any]:
    return {str(status): _refer("responses", f"Status{status}") for status in statuses}


def _components() -> dict[str, Any]:
    started, error = _refer("schemas", "Started"), _refer("schemas", "Error")
    required = _refer("schemas", "PaymentRequired")
    return {
        "schemas": {
            "Started": schemas.started_schema(),
            "Task": schemas.task_schema(),
            "PaymentRequired": schemas.challenge_schema(),
            "Error": schemas.error_schema(),
        },
        "responses": {
            "Started": {
                "description": "Paid, and the generation has started.",
                "headers": {"PAYMENT-RESPONSE": _base64_header("The settlement; x402 only.")},
                "content": _json(started, dict(started_example())),
            },
            "PaymentRequired": {
                "description": "The price of this request. Pay it and send the request again.",
                "headers": {"PAYMENT-REQUIRED": _base64_header("The x402 v2 challenge.")},
                "content": _json(required),
            },
            **{
                f"Status{status}": {
                    "description": words,
                    **({"headers": _RETRY_AFTER} if status in _HAVE_RETRY_AFTER else {}),
                    "content": _json(error),
                }
                for status, words in _REFUSALS.items()
            },
        },
    }


def _base64_header(words: str) -> dict[str, Any]:
    return {"schema": {"type": "string"}, "description": f"Base64 of JSON. {words}"}


def _json(schema: dict[str, Any], example: dict[str, Any] | None = None) -> dict[str, Any]:
    shown = {} if example is None else {"example": example}
    return {"application/json": {"schema": schema, **shown}}


def _refer(kind: str, name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/{kind}/{name}"}
