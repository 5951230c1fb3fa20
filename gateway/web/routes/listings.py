"""The agent manifest (spec §2.7), the DID document, and lists for registries and crawlers."""

import base64
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from gateway.domain import MAX_PROMPT_CHARS, Endpoint, PriceStep, UnitPrice
from gateway.domain.description import (
    choices_of,
    request_example,
    request_schema,
    required_fields,
    started_example,
)
from gateway.domain.eip3009 import Network
from gateway.errors import NotFound
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway.web import wire

_REGISTRATION = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"


def describe_gateway(gateway: Gateway) -> dict[str, Any]:
    """Return the manifest."""
    settings, base = gateway.settings, gateway.settings.base_url
    endpoints = [_describe_endpoint(endpoint, base) for endpoint in gateway.catalog]
    return {
        "did": make_did(base),
        "name": settings.name,
        "version": "1.0.0",
        "specVersion": "1.0",
        "selling": gateway.selling,
        "authentication": _describe_ways_to_pay(gateway),
        "endpoints": {
            "generate": f"{base}/api/x402/{{slug}}",
            "generateDirect": f"{base}/api/proxy-generate",
            "taskStatus": f"{base}/api/task/{{taskId}}",
            "llmstxt": f"{base}/llms.txt",
            "endpointList": f"{base}/sitemap.xml",
            **({"openapi": base + gateway.openapi} if gateway.openapi else {}),
            **{
                name: base + path
                for one in gateway.discovery
                for name, path in one.manifest.items()
            },
        },
        "agentCapabilities": sorted({endpoint["capability"] for endpoint in endpoints}),
        "availableEndpoints": endpoints,
        "identity": {"walletAddress": settings.wallet, "network": settings.network},
        **settings.chain.describe_money(),
        "refundPolicy": gateway.refund_promise().describe_in_words(),
        "created": settings.created,
        "updated": _date_of_update(gateway),
    }


def _date_of_update(gateway: Gateway) -> str:
    """Return the day of the last catalog change, by settings or by the operator."""
    configured = gateway.settings.updated or gateway.settings.created
    changed_at = gateway.catalog.changed_at
    if changed_at is None:
        return configured
    return max(configured, datetime.fromtimestamp(changed_at, UTC).strftime("%Y-%m-%d"))


def _describe_ways_to_pay(gateway: Gateway) -> list[dict[str, Any]]:
    settings = gateway.settings
    common = {"network": settings.network, "asset": "USDC"}
    proof = "must" if settings.require_payer_signature else "may"
    return [
        {
            "type": "X402",
            "description": "Send the request, get a 402 with the price, sign that payment, and "
            "send the request again with the signature.",
            **common,
            "paymentHeader": "X-PAYMENT",
            "docs": "https://www.x402.org",
        },
        {
            "type": "DirectUSDC",
            "description": "Transfer USDC to the wallet, then send the request with the "
            f"transaction's hash. The transfer's sender {proof} sign the request: "
            "`payerSignature`, see /llms.txt. A hash is public, and without that signature the "
            "first client to send it gets the task.",
            **common,
            "endpoint": f"{settings.base_url}/api/proxy-generate",
            "requiredFields": ["slug", "prompt", "txHash"],
        },
    ]


def _describe_endpoint(endpoint: Endpoint, base: str) -> dict[str, Any]:
    return {
        "slug": endpoint.slug,
        "title": endpoint.title,
        "description": endpoint.description,
        "price": wire.number(endpoint.price_units),
        "priceCurrency": "USDC",
        "model": endpoint.model,
        "provider": endpoint.provider,
        "capability": endpoint.capability,
        "url": f"{base}/api/x402/{endpoint.slug}",
        "requiredFields": required_fields(endpoint),
        **_describe_more(endpoint),
    }


def _describe_more(endpoint: Endpoint) -> dict[str, Any]:
    """Return the set fields of an endpoint that are not in the specification."""
    limit = endpoint.max_prompt_chars
    more = {
        "priceSteps": [_describe_price_step(step) for step in endpoint.price_steps],
        "pricePerPage": wire.number(endpoint.price_per_page) if endpoint.price_per_page else None,
        "unitPrice": _describe_unit_price(endpoint.unit_price),
        "optionalFields": {
            name: {"values": list(choice.values), "default": choice.default}
            for name, choice in choices_of(endpoint).items()
        },
        "fileExtensions": list(endpoint.file_extensions),
        "maxPages": endpoint.max_pages,
        **{name: fact for kind in endpoint.file_kinds for name, fact in kind.facts.items()},
        "maxPromptChars": limit if limit < MAX_PROMPT_CHARS else None,
    }
    return {name: value for name, value in more.items() if value}


def _describe_price_step(step: PriceStep) -> dict[str, Any]:
    conditions = {"resolution": step.resolution, "minPages": step.min_pages}
    known = {name: value for name, value in conditions.items() if value is not None}
    return {"price": wire.number(step.price_units), **known}


def _describe_unit_price(price: UnitPrice | None) -> dict[str, Any] | None:
    if price is None:
        return None
    bounds = {"step": price.step, "max": price.most}
    return {"unit": price.unit.name, "price": wire.number(price.price_units), **bounds}


def make_did(base: str) -> str:
    """Return the gateway's did:web identifier, with `%3A` before a port."""
    return "did:web:" + urlsplit(base).netloc.replace(":", "%3A")


def describe_identity(settings: Settings) -> dict[str, Any]:
    """Return the DID document, with the wallet and the manifest's URL."""
    did = make_did(settings.base_url)
    account = f"{settings.chain.caip2}:{settings.wallet}"
    return {
        "@context": [
            "https://www.w3.org/ns/did/v1",
            "https://w3id.org/security/suites/secp256k1recovery-2020/v2",
        ],
        "id": did,
        "verificationMethod": [
            {
                "id": f"{did}#wallet",
                "type": "EcdsaSecp256k1RecoveryMethod2020",
                "controller": did,
                "blockchainAccountId": account,
            }
        ],
        "service": [
            {
                "id": f"{did}#gateway",
                "type": "AgentManifest",
                "serviceEndpoint": f"{settings.base_url}/.well-known/agent-manifest.json",
            }
        ],
    }


def list_resources(gateway: Gateway) -> dict[str, Any]:
    """Return `/.well-known/x402.json`: each endpoint with its price and request.

    Source: the draft `specs/extensions/well-known-discovery.md` of x402-foundation/x402 (issue
    2582). Raises `NotFound` if the payment method has no x402 v2 challenge.
    """
    return {
        "x402Version": 2,
        "lastUpdated": int(gateway.now()),
        **gateway.settings.chain.describe_money(),
        "items": [_describe_resource(gateway, endpoint) for endpoint in gateway.catalog],
    }


def _describe_resource(gateway: Gateway, endpoint: Endpoint) -> dict[str, Any]:
    challenge = gateway.payments.methods.first.challenge(gateway.quote(endpoint), None, 2)
    header = challenge.headers.get("PAYMENT-REQUIRED")
    if header is None:
        raise NotFound("This gateway's way to pay has no x402 v2 challenge.")
    terms = json.loads(base64.b64decode(header))
    return {
        "resource": terms["resource"],
        "type": "http",
        "accepts": terms["accepts"],
        "input": {
            "method": "POST",
            # Each slug has its own route.
            "routeTemplate": f"/api/x402/{endpoint.slug}",
            "bodyType": "json",
            "body": request_schema(endpoint),
            "example": request_example(endpoint),
        },
        "output": {"mimeType": "application/json", "example": dict(started_example())},
    }


def describe_agent(gateway: Gateway) -> dict[str, Any]:
    """Return the ERC-8004 registration file, to which an on-chain registration points.

    Source: EIP-8004 of 2026, sections "Agent Registration File" and "Endpoint Domain Verification".
    """
    settings, base = gateway.settings, gateway.settings.base_url
    services = [
        {"name": "web", "endpoint": f"{base}/"},
        {"name": "DID", "endpoint": make_did(base), "version": "v1"},
    ]
    if gateway.openapi:
        openapi = {"name": "OpenAPI", "endpoint": base + gateway.openapi, "version": "3.1.0"}
        services.insert(1, openapi)
    for one in gateway.discovery:
        services += [{"name": name, "endpoint": base + path} for name, path in one.services.items()]
    if settings.contact_email:
        services.append({"name": "email", "endpoint": settings.contact_email})
    registrations = []
    for text in settings.agent_registrations:
        # Such as `eip155:8453:0x8004…/22`.
        registry, _, number = text.rpartition("/")
        registrations.append({"agentId": int(number), "agentRegistry": registry})
    endpoints = list(gateway.catalog)
    titles = ", ".join(endpoint.title for endpoint in endpoints) or "nothing at the moment"
    return {
        "type": _REGISTRATION,
        "name": settings.name,
        "description": _describe_sales(settings.chain, titles),
        "image": f"{base}/favicon.ico",
        "services": services,
        "x402Support": True,
        "active": bool(endpoints),
        "registrations": registrations,
    }


def _describe_sales(network: Network, titles: str) -> str:
    sales = f"Sells AI generations, each for one payment in {network.money} on {network.name}"
    return f"{sales}: {titles}. {network.notice}".strip()


def list_addresses(gateway: Gateway) -> str:
    """Return `/sitemap.xml`: the pages and the endpoints."""
    pages = [path for one in gateway.discovery for path in one.pages]
    paths = [*pages, *(f"/api/x402/{one.slug}" for one in gateway.catalog)]
    locations = "".join(
        f"<url><loc>{gateway.settings.base_url}{path}</loc></url>" for path in paths
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'
    )


def guide_crawlers(gateway: Gateway) -> str:
    """Return `/robots.txt`, which excludes buyers' tasks and files."""
    theirs = [path for one in gateway.discovery for path in one.closed_paths]
    closed = "".join(f"Disallow: {path}\n" for path in (*theirs, "/api/task/", "/files/"))
    return f"User-agent: *\n{closed}\nSitemap: {gateway.settings.base_url}/sitemap.xml\n"
