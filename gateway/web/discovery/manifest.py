"""The agent manifest (spec §2.7), and the DID document that its `did` leads to."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from gateway.domain import (
    MAX_PICTURE_PIXELS,
    MAX_PROMPT_CHARS,
    MIN_PICTURE_SIDE,
    Endpoint,
    PriceStep,
)
from gateway.domain.description import choices_of, required_fields
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway.web import wire


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
            "openapi": f"{base}/openapi.json",
            **{
                name: base + path
                for one in gateway.documents
                for name, path in one.manifest.items()
            },
        },
        "agentCapabilities": sorted({endpoint["capability"] for endpoint in endpoints}),
        "availableEndpoints": endpoints,
        "identity": {"walletAddress": settings.wallet, "network": settings.network},
        "refundPolicy": gateway.refund_promise().describe(),
        "created": settings.created,
        "updated": _date_of_update(gateway),
    }


def _date_of_update(gateway: Gateway) -> str:
    """Return the day on which the catalogue changed last, by settings or by the operator's hand."""
    said = gateway.settings.updated or gateway.settings.created
    changed_at = gateway.catalog.changed_at
    if changed_at is None:
        return said
    return max(said, datetime.fromtimestamp(changed_at, UTC).strftime("%Y-%m-%d"))


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
            "`payerSignature`, see /llms.txt.",
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
    """Return the fields about an endpoint that the specification does not know, where set."""
    limit = endpoint.max_prompt_chars
    more = {
        "priceSteps": [_describe_price_step(step) for step in endpoint.price_steps],
        "pricePerPage": wire.number(endpoint.price_per_page) if endpoint.price_per_page else None,
        "optionalFields": {
            name: {"values": list(choice.values), "default": choice.default}
            for name, choice in choices_of(endpoint).items()
        },
        "fileExtensions": list(endpoint.file_extensions),
        "maxPages": endpoint.max_pages,
        "minPictureSide": MIN_PICTURE_SIDE if endpoint.edits_pictures else None,
        "maxPicturePixels": MAX_PICTURE_PIXELS if endpoint.edits_pictures else None,
        "maxPromptChars": limit if limit < MAX_PROMPT_CHARS else None,
    }
    return {name: value for name, value in more.items() if value}


def _describe_price_step(step: PriceStep) -> dict[str, Any]:
    conditions = {"resolution": step.resolution, "minPages": step.min_pages}
    known = {name: value for name, value in conditions.items() if value is not None}
    return {"price": wire.number(step.price_units), **known}


def make_did(base: str) -> str:
    """Return the gateway's identifier by the method `web`; a port is written as `%3A`."""
    return "did:web:" + urlsplit(base).netloc.replace(":", "%3A")


def describe_identity(settings: Settings) -> dict[str, Any]:
    """Return the DID document: the wallet, and where the manifest is."""
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
