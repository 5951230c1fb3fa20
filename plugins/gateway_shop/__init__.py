"""Pages for people: shop, product, code samples, brand."""

from collections.abc import Callable

from gateway import hookimpl
from gateway.contracts.parts import Documents, Mount, Part
from gateway.running.gateway import Gateway
from gateway.web.routes.files import Assets, static_folder
from gateway_shop.amounts import Amounts
from gateway_shop.settings import ShopSettings

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


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define the settings of the pages."""
    register("", ShopSettings)


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Add the pages."""
    gateway.keep(Assets(static_folder() / "web"))
    pages = Mount(
        paths=["/", "/play/*", "/web/*", "/brand.css"],
        blueprint="gateway_shop.routes:make_blueprint",
    )
    mounts = [pages]
    if not gateway.settings.require_payer_signature:
        gateway.keep(Amounts(gateway))
        mounts += _PAYING
    register(Part(name="shop", mounts=mounts, documents=Documents(pages=["/"])))
