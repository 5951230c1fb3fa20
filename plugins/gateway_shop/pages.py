"""The content of the pages for people: plain values for the templates in `static/pages`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway.domain import Endpoint
from gateway.domain.description import price_range, request_schema
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway.version import VERSION
from gateway.web.routes.files import Assets
from gateway_bucket.settings import bucket_of
from gateway_shop import offers as shop_offers
from gateway_shop import purchase_code
from gateway_shop.brand import Brand
from gateway_shop.settings import play_key_of, shop_settings_of

_PICTURE_TO_EDIT = "sandbox.webp"
_NETWORKS = {"base": "Base", "base-sepolia": "Base Sepolia"}
_EXPLORERS = {8453: "https://basescan.org", 84532: "https://sepolia.basescan.org"}
_TEST_NETWORKS = ("base-sepolia",)


def content_policy(settings: Settings) -> str:
    """Return the Content-Security-Policy of the pages.

    Pictures may also come from the bucket with the outputs, the operator's logo, wallets (`data:`),
    and a file that the buyer has just chosen (`blob:`).
    """
    bucket = bucket_of(settings)
    addresses = [shop_settings_of(settings).logo_url, bucket.base_url if bucket else ""]
    pictures = " ".join(["'self'", "data:", "blob:", *map(_origin, filter(None, addresses))])
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src {pictures}; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


def view(gateway: Gateway, assets: Assets, slug: str) -> dict[str, Any]:
    """Return the values of a template; `slug` is empty for the front page."""
    settings = gateway.settings
    offers = shop_offers.describe_all(gateway, assets)
    shown = slug or next((offer["slug"] for offer in offers if offer["on_sale"]), "")
    return {
        "asset": assets.url,
        "settings": settings,
        "shop": shop_settings_of(settings),
        "logo": gateway.find(Brand).logo_path,
        "version": VERSION,
        "network": _describe_network(settings),
        "offers": offers,
        "layout": shop_offers.arrange(offers),
        "refund": gateway.refund_promise(),
        "openapi": gateway.openapi,
        "sells": gateway.wallet.problem is None,
        "sale_problem": gateway.sale_problem(),
        "sold": shop_offers.name_sold(offers),
        "cheapest": shop_offers.find_cheapest(offers),
        "offer": next((offer for offer in offers if offer["slug"] == slug), None),
        "code": _write_code(
            gateway, shown, serves_mcp=any("mcp" in one.manifest for one in gateway.documents)
        ),
        "page": _describe_page(gateway, assets, slug) if slug else None,
    }


def _write_code(gateway: Gateway, slug: str, *, serves_mcp: bool) -> Mapping[str, str]:
    if not slug:
        return {}
    registered = gateway.catalog[slug]
    sells = registered.sells_now and gateway.selling != "nothing"
    return purchase_code.write(
        gateway.settings, registered.endpoint, serves_mcp=serves_mcp, sells=sells
    )


def _describe_network(settings: Settings) -> dict[str, Any]:
    """Return the chain as the pages name it; `money` is the buyer's currency."""
    is_play = bool(play_key_of(settings))
    is_test = settings.network in _TEST_NETWORKS
    label = _NETWORKS.get(settings.network, settings.network)
    chain_id = settings.chain.chain_id
    return {
        "label": f"{label} (embedded play chain)" if is_play else label,
        "isPlay": is_play,
        "isTest": is_test,
        "money": "play USDC" if is_play else "test USDC" if is_test else "USDC",
        "chainId": chain_id,
        "caip2": settings.chain.caip2,
        "token": settings.chain.token,
        "explorer": None if is_play else _EXPLORERS.get(chain_id),
    }


def _describe_page(gateway: Gateway, assets: Assets, slug: str) -> dict[str, Any]:
    """Return the data for the script of `/play/{slug}`."""
    settings, endpoint = gateway.settings, gateway.catalog[slug].endpoint
    return {
        "slug": slug,
        "title": endpoint.title,
        "baseUrl": settings.base_url,
        "wallet": settings.wallet,
        "network": _describe_network(settings),
        "playKey": play_key_of(settings) or None,
        "refund": gateway.refund_promises.of(price_range(endpoint)[1]).sentence,
        "schema": request_schema(endpoint),
        "required": list(endpoint.required_fields),
        "extensions": list(endpoint.file_extensions),
        "fileNoun": shop_offers.name_file(endpoint),
        "samplePicture": _choose_picture(endpoint, assets),
    }


def _choose_picture(endpoint: Endpoint, assets: Assets) -> str | None:
    """Return the URL of a sample picture for visitors without one of their own."""
    takes_webp = endpoint.edits_pictures and ".webp" in endpoint.file_extensions
    return assets.url(_PICTURE_TO_EDIT) if takes_webp else None


def _origin(address: str) -> str:
    url = urlsplit(address)
    return f"{url.scheme}://{url.netloc}"
