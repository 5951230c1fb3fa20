"""The pages for people: the shop, a page per offer and per task, and their files."""

from quart import Blueprint, Response

from gateway.errors import NotFound
from gateway.web.front.current import address, current_gateway
from gateway.web.routes.files import Assets, answer_asset
from gateway.web.routes.tasks import TASK_LIMIT, find_task
from gateway_shop import brand
from gateway_shop.brand import Brand
from gateway_shop.examples import Examples
from gateway_shop.rendering import REVALIDATED, answer_page

blueprint = Blueprint("pages", __name__)

# Pages of single buyers are no matter for search engines.
_NOT_INDEXED = {"X-Robots-Tag": "noindex"}
# Its name does not change with its content. The last two let sites load it that isolate themselves,
# or compare its hash.
_FOR_OTHER_SITES = {
    "Cache-Control": "public, max-age=3600",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Access-Control-Allow-Origin": "*",
}
# The names of examples and logos change with their content.
_FOR_EVER = "public, max-age=31536000, immutable"
# An SVG may be opened by itself, too.
_INERT = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@blueprint.get("/")
async def home() -> Response:
    """Show the offers, how to buy them, and the refund promise."""
    return await answer_page("home.html")


@blueprint.get("/play/<slug>")
async def play(slug: str) -> Response:
    """Show a form to buy one generation of an endpoint; raises `NotFound`.

    The page's script fills the form by the query. The server does not read it.
    """
    current_gateway().catalog[slug]
    return await answer_page("play.html", slug)


@blueprint.get("/task/<task_id>")
async def task(task_id: str) -> Response:
    """Show a task: progress, result, receipt and refund; raises `NotFound`.

    The page is the same for all tasks of an endpoint. Its script reads the task as programs do.
    """
    gateway = current_gateway()
    await gateway.limits.hit(TASK_LIMIT, address())
    found = await find_task(gateway, task_id)
    answer = await answer_page("task.html", found.slug)
    answer.headers.update(_NOT_INDEXED)
    return answer


@blueprint.get("/purchases")
async def purchases() -> Response:
    """Show the purchases that the visitor's browser keeps. The gateway does not learn of them."""
    answer = await answer_page("purchases.html")
    answer.headers.update(_NOT_INDEXED)
    return answer


@blueprint.get("/button.js")
async def button() -> Response:
    """Send the script by which other sites show a button that opens a form here."""
    assets = _assets()
    answer = answer_asset(assets[assets.name("button.js")])
    answer.headers.update(_FOR_OTHER_SITES)
    return answer


@blueprint.get("/web/<name>")
async def asset(name: str) -> Response:
    """Send a built file; its name changes with its content."""
    return answer_asset(_assets()[name])


@blueprint.get("/brand.css")
async def brand_stylesheet() -> Response:
    """Send the operator's colour; empty if none is set."""
    color = current_gateway().find(Brand).color
    rules = brand.stylesheet(color) if color else ""
    headers = {"Content-Type": "text/css; charset=utf-8", "Cache-Control": REVALIDATED}
    return Response(rules, headers=headers)


@blueprint.get("/brand/<name>")
async def logo(name: str) -> Response:
    """Send the operator's logo; raises `NotFound`."""
    found = current_gateway().find(Brand).logo
    if found is None or name != found.name:
        raise NotFound("There is no such logo. GET / shows what is sold here.")
    headers = {"Content-Type": found.media_type, "Cache-Control": _FOR_EVER}
    return Response(found.data, headers=headers | {"Content-Security-Policy": _INERT})


@blueprint.get("/examples/<name>")
async def example(name: str) -> Response:
    """Send the picture of an example; raises `NotFound`."""
    data = await current_gateway().find(Examples).picture(name)
    headers = {"Content-Type": "image/webp", "Cache-Control": _FOR_EVER}
    return Response(data, headers=headers)


def _assets() -> Assets:
    return current_gateway().find(Assets)


def make_blueprint() -> Blueprint:
    """Return the blueprint of the pages."""
    return blueprint
