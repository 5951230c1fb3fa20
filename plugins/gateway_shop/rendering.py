"""Renders the pages for people, once per state of catalogue, refunds, sales and examples."""

import hashlib
from http import HTTPStatus

import attrs
from quart import Response, render_template, request
from werkzeug.http import quote_etag, unquote_etag

from gateway.running.gateway import Gateway
from gateway.web.front.current import current_gateway
from gateway.web.routes.files import Assets
from gateway_shop import pages as shop_pages
from gateway_shop.examples import Examples

# The browser revalidates each time: a page refers to the files of one version.
REVALIDATED = "no-cache"


@attrs.frozen
class Notice:
    """What a person reads instead of a page, and where the button leads."""

    title: str
    text: str
    href: str = "/"
    button: str = "See what is on offer"


async def answer_page(
    template: str, slug: str = "", *, status: int = HTTPStatus.OK, notice: Notice | None = None
) -> Response:
    """Return a page of `static/pages/`; `slug` is the endpoint that it is about.

    Nothing else of a request is in a page, so few pages are kept.
    """
    gateway = current_gateway()
    text = await _render_cached(gateway, template, slug, notice)
    tag = quote_etag(hashlib.sha256(text.encode()).hexdigest()[:32])
    headers = {
        "Content-Security-Policy": shop_pages.content_policy(
            gateway.settings, sells=template == "play.html"
        ),
        "Cache-Control": REVALIDATED,
        "Referrer-Policy": "no-referrer",
    }
    if status == HTTPStatus.OK:
        headers["ETag"] = tag
        if request.if_none_match.contains_weak(unquote_etag(tag)[0] or ""):
            return Response(b"", HTTPStatus.NOT_MODIFIED, headers)
    return Response(text, status, headers | {"Content-Type": "text/html; charset=utf-8"})


async def _render_cached(gateway: Gateway, template: str, slug: str, notice: Notice | None) -> str:
    kept: dict[tuple[object, ...], str] = gateway.catalog.cached("pages", dict)
    promised = shop_pages.promise_of(gateway, slug).on_failure
    state = (promised, gateway.selling, gateway.sale_problem())
    key = (template, slug, notice, gateway.find(Examples).version, *state)
    if key not in kept:
        view = shop_pages.view(gateway, gateway.find(Assets), slug)
        kept[key] = await render_template(f"pages/{template}", **view, notice=notice)
    return kept[key]
