"""Documents by which agents find the gateway: manifest, DID document, llms.txt, sitemap."""

from typing import Any
from urllib.parse import urlsplit

from quart import Blueprint, Response, render_template

from gateway.domain import MAX_FILE_BYTES, MAX_PROMPT_CHARS, Endpoint, PriceStep
from gateway.settings import parse_limit
from gateway.web import wire
from gateway.web.services import Services, services

CHOICES = ("aspect_ratio", "output_format", "resolution")
blueprint = Blueprint("discovery", __name__)


@blueprint.get("/.well-known/agent-manifest.json")
async def manifest() -> Response:
    """Describe the gateway to agents (spec §2.7)."""
    gateway = services()
    gateway.wallet.check_known()
    text = gateway.catalog.keep("manifest", lambda: wire.dumps(_describe_gateway(gateway)) + "\n")
    return Response(text, content_type="application/json")


def _describe_gateway(gateway: Services) -> dict[str, Any]:
    settings, base = gateway.settings, gateway.settings.base_url
    endpoints = [_describe_endpoint(endpoint, base) for endpoint in gateway.catalog]
    return {
        "did": _make_did(base),
        "name": settings.name,
        "version": "1.0.0",
        "specVersion": "1.0",
        "authentication": _describe_ways_to_pay(gateway),
        "endpoints": {
            "generate": f"{base}/api/x402/{{slug}}",
            "generateDirect": f"{base}/api/proxy-generate",
            "taskStatus": f"{base}/api/task/{{taskId}}",
            "llmstxt": f"{base}/llms.txt",
            "endpointList": f"{base}/sitemap.xml",
        },
        "agentCapabilities": sorted({endpoint["capability"] for endpoint in endpoints}),
        "availableEndpoints": endpoints,
        "identity": {"walletAddress": settings.wallet, "network": settings.network},
        "created": settings.created,
        "updated": settings.updated or settings.created,
    }


def _describe_ways_to_pay(gateway: Services) -> list[dict[str, Any]]:
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
        "requiredFields": list(endpoint.required_fields),
        **_describe_more(endpoint),
    }


def _describe_more(endpoint: Endpoint) -> dict[str, Any]:
    """Return the fields about an endpoint that the specification does not know, where set."""
    limit = endpoint.max_prompt_chars
    more = {
        "priceSteps": [_describe_price_step(step) for step in endpoint.price_steps],
        "optionalFields": {
            name: {"values": list(choice.values), "default": choice.default}
            for name in CHOICES
            if (choice := getattr(endpoint, name)).values
        },
        "fileExtensions": list(endpoint.file_extensions),
        "maxPages": endpoint.max_pages,
        "maxPromptChars": limit if limit < MAX_PROMPT_CHARS else None,
    }
    return {name: value for name, value in more.items() if value}


def _describe_price_step(step: PriceStep) -> dict[str, Any]:
    conditions = {"resolution": step.resolution, "minPages": step.min_pages}
    known = {name: value for name, value in conditions.items() if value is not None}
    return {"price": wire.number(step.price_units), **known}


def _make_did(base: str) -> str:
    return "did:web:" + urlsplit(base).netloc.replace(":", "%3A")


@blueprint.get("/.well-known/did.json")
async def did_document() -> dict[str, Any]:
    """Return the document of the manifest's `did` (did:web)."""
    settings = services().settings
    did = _make_did(settings.base_url)
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


@blueprint.get("/llms.txt")
async def llms() -> Response:
    """Describe the whole gateway in one text for a language model (spec §4.5)."""
    gateway = services()
    gateway.wallet.check_known()
    settings = gateway.settings
    text = await render_template(
        "llms.txt",
        settings=settings,
        network=settings.chain,
        endpoints=list(gateway.catalog),
        price=wire.number,
        choices=CHOICES,
        max_prompt_chars=MAX_PROMPT_CHARS,
        max_file_mb=MAX_FILE_BYTES / 10**6,
        limits={
            name: parse_limit(getattr(settings, f"limit_{name}"))
            for name in ("x402", "price", "direct", "task")
            if getattr(settings, f"limit_{name}")
        },
    )
    return Response(text, content_type="text/plain; charset=utf-8")


@blueprint.get("/sitemap.xml")
async def sitemap() -> Response:
    """List the endpoints' addresses; the manifest links here as `endpointList`."""
    gateway = services()
    text = gateway.catalog.keep("sitemap", lambda: _list_addresses(gateway))
    return Response(text, content_type="application/xml; charset=utf-8")


def _list_addresses(gateway: Services) -> str:
    base = gateway.settings.base_url
    locations = "".join(
        f"<url><loc>{base}/api/x402/{endpoint.slug}</loc></url>" for endpoint in gateway.catalog
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'
    )
