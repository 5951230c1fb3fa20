"""Pages for people: shop, product, code samples, brand."""

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import cast

from quart import Response

from gateway import hookimpl
from gateway.concurrency.late_imports import import_in_turn
from gateway.contracts.parts import Discovery, Mount, Part
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway.web.front.error_pages import ErrorPages
from gateway.web.routes.files import Assets, static_folder
from gateway_shop.amounts import Amounts
from gateway_shop.brand import Brand
from gateway_shop.examples import Examples
from gateway_shop.settings import ShopSettings, shop_settings_of

_RELOADED_EVERY_S = 30.0

_PAGES = Mount(
    paths=[
        "/",
        "/play/*",
        "/task/*",
        "/purchases",
        "/button.js",
        "/web/*",
        "/examples/*",
        "/brand/*",
        "/brand.css",
    ],
    blueprint="gateway_shop.routes:make_blueprint",
)
# Each amount is kept for a day, and each lookup may read the chain.
_PAYING = (
    Mount(
        paths=["/pay/amount"],
        blueprint="gateway_shop.pay_routes:make_amount_blueprint",
        limit="6/600s",
    ),
    Mount(
        paths=["/pay/transfer"],
        blueprint="gateway_shop.pay_routes:make_transfer_blueprint",
        limit="60/60s",
    ),
)
_FOR_PEOPLE = {
    "/play/{slug}?prompt={prompt}": "the form with a request filled in, for a person with a "
    "wallet; each field of the request but files may follow, URL-encoded. Opening it buys nothing",
    "/task/{taskId}": "a task as a page for people",
}
# Imported with the first error that a person sees, as the blueprint with the first page.
_ERRORS = "gateway_shop.errors"
_imported: dict[str, ModuleType] = {}


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define the settings of the pages."""
    register("", ShopSettings)


@hookimpl
def register_check_rows(
    register: Callable[[str, Callable[[], Awaitable[str]]], None], settings: Settings
) -> None:
    """Report the logo, and the tones of the operator's colour, if either is set."""
    shop = shop_settings_of(settings)

    async def check() -> str:
        return Brand.of(shop).describe()

    if shop.brand_color or shop.logo_file:
        register("brand", check)


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Add the pages."""
    gateway.keep(Assets(static_folder() / "web"))
    gateway.keep(ErrorPages(_answer_error_page))
    gateway.keep(Brand.of(shop_settings_of(gateway.settings)))
    examples = Examples(gateway.store)
    gateway.keep(examples)
    mounts = [_PAGES]
    if not gateway.settings.require_payer_signature:
        gateway.keep(Amounts(gateway))
        mounts += _PAYING
    register(
        Part(
            name="shop",
            start=examples.load,
            work=examples.load,
            every_s=_RELOADED_EVERY_S,
            mounts=mounts,
            discovery=Discovery(
                pages=["/"], closed_paths=["/task/", "/purchases"], guide=_FOR_PEOPLE
            ),
        )
    )


async def _answer_error_page(status: int) -> Response:
    if _ERRORS not in _imported:
        _imported[_ERRORS] = await asyncio.to_thread(import_in_turn, _ERRORS)
    return cast(Response, await _imported[_ERRORS].answer_error_page(status))
