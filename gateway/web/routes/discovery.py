"""Documents by which agents and crawlers find the gateway."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from quart import Blueprint, Response, current_app, render_template, request

from gateway.domain import MAX_PROMPT_CHARS
from gateway.domain.description import MAX_FILE_MB, choices_of, promised_pixels, required_fields
from gateway.running.gateway import Gateway
from gateway.settings import parse_limit
from gateway.web import wire
from gateway.web.front.current import current_gateway
from gateway.web.routes.listings import (
    describe_agent,
    describe_gateway,
    describe_identity,
    guide_crawlers,
    list_addresses,
    list_resources,
)

blueprint = Blueprint("discovery", __name__)
_MINUTE, _DAY = "public, max-age=60", "public, max-age=86400"


@attrs.frozen(eq=False, repr=False)
class Document:
    """A document that is cached until the catalog changes."""

    body: bytes
    tag: str = attrs.field(init=False)

    @tag.default
    def _hash_body(self) -> str:
        return hashlib.sha256(self.body).hexdigest()[:32]

    def to_response(self, content_type: str, cache: str = _MINUTE) -> Response:
        """Return the document, or a 304 if the client has it."""
        headers = {"ETag": f'"{self.tag}"', "Cache-Control": cache}
        # A proxy that compresses the answer makes its ETag weak.
        if request.if_none_match.contains_weak(self.tag):
            return Response(b"", 304, headers)
        return Response(self.body, 200, headers, content_type=content_type)


def keep_document(
    gateway: Gateway, name: str, describe: Callable[[Gateway], dict[str, Any] | str]
) -> Document:
    """Return the document that `describe` creates, cached.

    A change of the catalog, the refund promise or the flows on sale invalidates it.
    """

    def make() -> Document:
        content = describe(gateway)
        text = content if isinstance(content, str) else wire.dumps(content) + "\n"
        return Document(text.encode())

    state = f"{gateway.refund_promise().on_failure} {gateway.selling}"
    return gateway.catalog.cached(f"{name} {state}", make)


@blueprint.get("/.well-known/agent-manifest.json")
async def manifest() -> Response:
    """Describe the gateway to agents (spec §2.7)."""
    gateway = current_gateway()
    gateway.wallet.check_known()
    text = keep_document(gateway, "manifest", describe_gateway).body
    return Response(text, content_type="application/json")


@blueprint.get("/.well-known/did.json")
async def did_document() -> dict[str, Any]:
    """Return the DID document of the manifest's `did` (did:web)."""
    return describe_identity(current_gateway().settings)


@blueprint.get("/.well-known/x402.json")
async def resources() -> Response:
    """List the endpoints with their terms of payment (a draft of the x402 foundation)."""
    gateway = current_gateway()
    gateway.wallet.check_known()
    return keep_document(gateway, "resources", list_resources).to_response("application/json")


@blueprint.get("/.well-known/agent-registration.json")
async def registration() -> Response:
    """Return the ERC-8004 registration file."""
    return keep_document(current_gateway(), "registration", describe_agent).to_response(
        "application/json"
    )


@blueprint.get("/llms.txt")
async def llms() -> Response:
    """Describe the gateway for a language model (spec §4.5)."""
    gateway = current_gateway()
    gateway.wallet.check_known()
    settings = gateway.settings
    text = await render_template(
        "llms.txt",
        settings=settings,
        callbacks=gateway.callbacks is not None,
        discovery=gateway.discovery,
        openapi=gateway.openapi,
        refund=gateway.refund_promise(),
        selling=gateway.selling,
        problem=gateway.sale_problem(),
        guides=gateway.payments.methods.guides,
        network=settings.chain,
        endpoints=list(gateway.catalog),
        price=wire.number,
        choices_of=choices_of,
        promised_pixels=promised_pixels,
        required_fields=required_fields,
        max_prompt_chars=MAX_PROMPT_CHARS,
        max_file_mb=MAX_FILE_MB,
        limits={
            name: parse_limit(getattr(settings, f"limit_{name}"))
            for name in ("x402", "price", "direct", "task")
            if getattr(settings, f"limit_{name}")
        },
    )
    return Response(text, content_type="text/plain; charset=utf-8")


@blueprint.get("/sitemap.xml")
async def sitemap() -> Response:
    """List the URLs of the pages; the manifest calls this `endpointList`."""
    text = keep_document(current_gateway(), "sitemap", list_addresses).body
    return Response(text, content_type="application/xml; charset=utf-8")


@blueprint.get("/robots.txt")
async def robots() -> Response:
    """Return the rules for crawlers."""
    return keep_document(current_gateway(), "robots", guide_crawlers).to_response(
        "text/plain; charset=utf-8", _DAY
    )


@blueprint.get("/favicon.ico")
async def favicon() -> Response:
    """Return the icon for browsers and registries."""
    folder = Path(str(current_app.template_folder))

    def read() -> Document:
        return Document((folder / "favicon.ico").read_bytes())

    return current_gateway().catalog.cached("favicon", read).to_response("image/x-icon", _DAY)
