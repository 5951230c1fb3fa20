"""Pages for people: shop, product, code samples, brand."""

from collections.abc import Callable

from gateway import hookimpl
from gateway.contracts.parts import Documents, Mount, Part
from gateway.running.gateway import Gateway
from gateway.web.routes.files import Assets, static_folder
from gateway_shop.settings import ShopSettings


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define the settings of the pages."""
    register("", ShopSettings)


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Add the pages."""
    gateway.keep(Assets(static_folder() / "web"))
    register(
        Part(
            name="shop",
            mounts=[
                Mount(
                    paths=[
                        "/",
                        "/play/*",
                        "/task/*",
                        "/purchases",
                        "/web/*",
                        "/brand.css",
                    ],
                    blueprint="gateway_shop.routes:make_blueprint",
                )
            ],
            documents=Documents(pages=["/"], closed_paths=["/task/", "/purchases"]),
        )
    )
