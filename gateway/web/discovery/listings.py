"""Lists for registries and crawlers: `x402.json`, the ERC-8004 file, the sitemap, robots.txt."""

import base64
import json
from typing import Any

from gateway.domain import Endpoint
from gateway.domain.description import request_example, request_schema, started_example
from gateway.errors import NotFound
from gateway.running.gateway import Gateway
from gateway.web.discovery.manifest import make_did

_REGISTRATION = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"


def list_resources(gateway: Gateway) -> dict[str, Any]:
    """Return `/.well-known/x402.json`: each endpoint with its price and its request.

    Source: the draft `specs/extensions/well-known-discovery.md` of x402-foundation/x402 (issue
    2582). Raises `NotFound` where the payment method has no x402 v2 challenge.
    """
    return {
        "x402Version": 2,
        "lastUpdated": int(gateway.now()),
        "items": [_describe_resource(gateway, endpoint) for endpoint in gateway.catalog],
    }


def _describe_resource(gateway: Gateway, endpoint: Endpoint) -> dict[str, Any]:
    challenge = _read_challenge(gateway, endpoint)
    return {
        "resource": challenge["resource"],
        "type": "http",
        "accepts": challenge["accepts"],
        "input": {
            "method": "POST",
            # Each slug is a route of its own.
            "routeTemplate": f"/api/x402/{endpoint.slug}",
            "bodyType": "json",
            "body": request_schema(endpoint),
            "example": request_example(endpoint),
        },
        "output": {"mimeType": "application/json", "example": dict(started_example())},
    }


def _read_challenge(gateway: Gateway, endpoint: Endpoint) -> Any:
    """Return the x402 v2 challenge of an endpoint, as its 402 has it."""
    challenge = gateway.payments.methods.first.challenge(gateway.quote(endpoint), None, 2)
    header = challenge.headers.get("PAYMENT-REQUIRED")
    if header is None:
        raise NotFound("This gateway's way to pay has no x402 v2 challenge.")
    return json.loads(base64.b64decode(header))


def describe_agent(gateway: Gateway) -> dict[str, Any]:
    """Return the registration file of ERC-8004, which an on-chain registration points to.

    Source: EIP-8004 of 2026, sections "Agent Registration File" and "Endpoint Domain Verification".
    """
    settings, base = gateway.settings, gateway.settings.base_url
    services = [
        {"name": "web", "endpoint": f"{base}/"},
        {"name": "OpenAPI", "endpoint": f"{base}/openapi.json", "version": "3.1.0"},
        {"name": "DID", "endpoint": make_did(base), "version": "v1"},
    ]
    for one in gateway.documents:
        services += [{"name": name, "endpoint": base + path} for name, path in one.services.items()]
    if settings.contact_email:
        services.append({"name": "email", "endpoint": settings.contact_email})
    endpoints = list(gateway.catalog)
    titles = ", ".join(endpoint.title for endpoint in endpoints) or "nothing at the moment"
    return {
        "type": _REGISTRATION,
        "name": settings.name,
        "description": f"Sells AI generations, each for one payment in USDC on "
        f"{settings.chain.name}: {titles}.",
        "image": f"{base}/favicon.ico",
        "services": services,
        "x402Support": True,
        "active": bool(endpoints),
        "registrations": [_read_registration(text) for text in settings.agent_registrations],
    }


def _read_registration(text: str) -> dict[str, Any]:
    """Return a registration of the settings, such as `eip155:8453:0x8004…/22`, as the file has it.

    The settings were checked at the start.
    """
    registry, _, number = text.rpartition("/")
    return {"agentId": int(number), "agentRegistry": registry}


def list_addresses(gateway: Gateway) -> str:
    """Return `/sitemap.xml`: the pages for people, and each endpoint's address."""
    pages = [path for one in gateway.documents for path in one.pages]
    paths = [*pages, *(f"/api/x402/{one.slug}" for one in gateway.catalog)]
    locations = "".join(
        f"<url><loc>{gateway.settings.base_url}{path}</loc></url>" for path in paths
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'
    )


def guide_crawlers(gateway: Gateway) -> str:
    """Return `/robots.txt`: crawlers leave buyers' tasks and files alone."""
    theirs = [path for one in gateway.documents for path in one.closed_paths]
    closed = "".join(f"Disallow: {path}\n" for path in (*theirs, "/api/task/", "/files/"))
    return f"User-agent: *\n{closed}\nSitemap: {gateway.settings.base_url}/sitemap.xml\n"
