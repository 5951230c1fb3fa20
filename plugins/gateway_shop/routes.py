"""The pages for people: the shop, a page per offer, and their files."""

import hashlib
from http import HTTPStatus

from quart import Blueprint, Response, render_template, request
from werkzeug.http import quote_etag, unquote_etag

from gateway.running.gateway import Gateway
from gateway.web.front.current import current_gateway
from gateway.web.routes.files import Assets, answer_asset
from gateway_shop import brand
from gateway_shop import pages as shop_pages
from gateway_shop.settings import shop_settings_of

blueprint = Blueprint("pages", __name__)

# The browser revalidates each time: a page refers to the files of one version.
_REVALIDATED = "no-cache"


@blueprint.get("/")
async def home() -> Response:
    """Show the offers, how to buy them, and the refund promise."""
    return await _answer_page("home.html", "")


@blueprint.get("/play/<slug>")
async def play(slug: str) -> Response:
    """Show a form to buy one generation of an endpoint; raises `NotFound`."""
    current_gateway().catalog[slug]
    return await _answer_page("play.html", slug)


@blueprint.get("/web/<name>")
async def asset(name: str) -> Response:
    """Send a built file; its name changes with its content."""
    return answer_asset(_assets()[name])


@blueprint.get("/brand.css")
async def brand_stylesheet() -> Response:
    """Send the operator's colour; empty if none is set."""
    color = shop_settings_of(current_gateway().settings).brand_color
    rules = brand.stylesheet(color) if color else ""
    headers = {"Content-Type": "text/css; charset=utf-8", "Cache-Control": _REVALIDATED}
    return Response(rules, headers=headers)


async def _answer_page(template: str, slug: str) -> Response:
    gateway = current_gateway()
    text = await _render_cached(gateway, template, slug)
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


async def _render_cached(gateway: Gateway, template: str, slug: str) -> str:
    """Return a page, rendered once per state of the catalogue, the refunds and the sales."""
    kept: dict[tuple[str | None, ...], str] = gateway.catalog.cached("pages", dict)
    promised = shop_pages.promise_of(gateway, slug).on_failure
    state = (promised, gateway.selling, gateway.sale_problem())
    key = (template, slug, *state)
    if key not in kept:
        view = shop_pages.view(gateway, _assets(), slug)
        kept[key] = await render_template(f"pages/{template}", **view)
    return kept[key]


def _assets() -> Assets:
    return current_gateway().find(Assets)


def make_blueprint() -> Blueprint:
    """Return the blueprint of the pages."""
    return blueprint
