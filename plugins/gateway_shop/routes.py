"""The pages for people: what is sold, a page to buy each of it, and the files of both."""

import hashlib
from http import HTTPStatus

from quart import Blueprint, Response, current_app, render_template, request
from werkzeug.http import quote_etag, unquote_etag

from gateway.web.assets import Asset, Assets
from gateway.web.services import Services, services
from gateway_shop import brand
from gateway_shop import pages as shop_pages

blueprint = Blueprint("pages", __name__)

ASSETS = "gateway-assets"
_FOR_EVER = "public, max-age=31536000, immutable"
# The browser asks each time whether its copy is the newest: a page names files of one version.
_REVALIDATED = "no-cache"


@blueprint.get("/")
async def home() -> Response:
    """Show what is sold, how to buy it, and what happens if it fails."""
    return await _answer_page("home.html", "")


@blueprint.get("/play/<slug>")
async def play(slug: str) -> Response:
    """Show a form to buy one generation of an endpoint; raises `NotFound`."""
    services().catalog[slug]
    return await _answer_page("play.html", slug)


@blueprint.get("/web/<name>")
async def asset(name: str) -> Response:
    """Send a built file; its name changes with its content."""
    return answer_asset(_assets()[name])


def answer_asset(found: Asset) -> Response:
    """Return a file that browsers may keep for ever, by gzip where they take that."""
    headers = {"Content-Type": found.media_type, "Cache-Control": _FOR_EVER}
    if found.gzipped is None:
        return Response(found.data, headers=headers)
    headers["Vary"] = "Accept-Encoding"
    if not request.accept_encodings.quality("gzip"):
        return Response(found.data, headers=headers)
    return Response(found.gzipped, headers=headers | {"Content-Encoding": "gzip"})


@blueprint.get("/brand.css")
async def brand_stylesheet() -> Response:
    """Send the operator's colour, and nothing where none is set."""
    color = services().settings.brand_color
    rules = brand.stylesheet(color) if color else ""
    headers = {"Content-Type": "text/css; charset=utf-8", "Cache-Control": _REVALIDATED}
    return Response(rules, headers=headers)


async def _answer_page(template: str, slug: str) -> Response:
    gateway = services()
    text = await _render_kept(gateway, template, slug)
    tag = quote_etag(hashlib.sha256(text.encode()).hexdigest()[:32])
    headers = {
        "Content-Security-Policy": shop_pages.content_policy(gateway.settings),
        "Cache-Control": _REVALIDATED,
        "ETag": tag,
        "Referrer-Policy": "no-referrer",
    }
    if request.if_none_match.contains_weak(unquote_etag(tag)[0] or ""):
        return Response(b"", HTTPStatus.NOT_MODIFIED, headers)
    return Response(text, headers=headers | {"Content-Type": "text/html; charset=utf-8"})


async def _render_kept(gateway: Services, template: str, slug: str) -> str:
    """Return a page, rendered once for each state of the catalogue, the refunds and the sales."""
    kept: dict[tuple[str | None, ...], str] = gateway.catalog.keep("pages", dict)
    state = (gateway.refund_promise().on_failure, gateway.selling, gateway.unsold_because())
    key = (template, slug, *state)
    if key not in kept:
        view = shop_pages.view(gateway, _assets(), slug)
        kept[key] = await render_template(f"pages/{template}", **view)
    return kept[key]


def _assets() -> Assets:
    assets: Assets = current_app.extensions[ASSETS]
    return assets
