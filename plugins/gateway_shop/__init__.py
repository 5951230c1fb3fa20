"""Pages for people: shop, product, code samples, brand."""

from collections.abc import Awaitable, Callable

from gateway import hookimpl
from gateway.contracts.parts import Documents, Mount, Part
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway.web.routes.files import Assets, static_folder
from gateway_shop.brand import Brand
from gateway_shop.examples import Examples
from gateway_shop.settings import ShopSettings, shop_settings_of

_RELOADED_EVERY_S = 30.0


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
    gateway.keep(Brand.of(shop_settings_of(gateway.settings)))
    examples = Examples(gateway.store)
    gateway.keep(examples)
    register(
        Part(
            name="shop",
            start=examples.load,
            work=examples.load,
            every_s=_RELOADED_EVERY_S,
            mounts=[
                Mount(
                    paths=["/", "/play/*", "/web/*", "/examples/*", "/brand/*", "/brand.css"],
                    blueprint="gateway_shop.routes:make_blueprint",
                )
            ],
            documents=Documents(pages=["/"]),
        )
    )
