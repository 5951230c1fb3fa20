"""The content of the pages for people: plain values for the templates in `static/pages`."""

import functools
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway.domain import Endpoint
from gateway.domain.description import price_range
from gateway.domain.failure_reasons import FailureReason
from gateway.domain.refund_promise import RefundPromise
from gateway.running.gateway import Gateway
from gateway.settings import COINBASE_FACTORIES, Settings
from gateway.version import VERSION
from gateway.web.routes.files import Assets, static_folder
from gateway_bucket.settings import bucket_of
from gateway_shop import offers as shop_offers
from gateway_shop import purchase_code, sample_files
from gateway_shop.brand import Brand
from gateway_shop.settings import play_key_of, shop_settings_of

_NETWORKS = {"base": "Base", "base-sepolia": "Base Sepolia"}
_EXPLORERS = {8453: "https://basescan.org", 84532: "https://sepolia.basescan.org"}


@functools.cache
def _dialog_styles() -> str:
    """Return the sources of inline styles: the dialog of Base Account, when its window is blocked.

    Its scripts are files of ours, and its window talks to the page by messages.
    """
    policy = json.loads((static_folder() / "web" / "policy.json").read_text("utf-8"))
    return " ".join(f"'{one}'" for one in policy["styles"])


def content_policy(settings: Settings, *, sells: bool = False) -> str:
    """Return the Content-Security-Policy of the pages; if it `sells`, of the page of one offer.

    Pictures and sounds may also come from the bucket with the outputs, the operator's logo, wallets
    (`data:`), and a file that the buyer has just chosen (`blob:`).
    """
    takes_passkeys = sells and not play_key_of(settings)
    styles = f"'self' {_dialog_styles()}" if takes_passkeys else "'self'"
    servers = " ".join(["'self'", *(shop_settings_of(settings).wallet_origins if sells else ())])
    bucket = bucket_of(settings)
    addresses = [shop_settings_of(settings).logo_url, bucket.base_url if bucket else ""]
    pictures = " ".join(["'self'", "data:", "blob:", *map(_origin, filter(None, addresses))])
    return (
        f"default-src 'none'; script-src 'self'; style-src {styles}; img-src {pictures}; "
        f"media-src {pictures}; connect-src {servers}; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    )


def view(gateway: Gateway, assets: Assets, slug: str) -> dict[str, Any]:
    """Return the values of a template.

    `slug` is empty for pages about no endpoint. It may be of an endpoint that is gone: its tasks
    keep their pages.
    """
    settings = gateway.settings
    offers = shop_offers.describe_all(gateway, assets)
    known, sold = gateway.catalog.find(slug), gateway.catalog.find_endpoint(slug)
    title = known.endpoint.title if known else slug
    payable = (offer["slug"] for offer in offers if offer["on_sale"] or offer["by_transfer"])
    first = next(payable, "")
    return {
        "asset": assets.url,
        "settings": settings,
        "shop": shop_settings_of(settings),
        "logo": gateway.find(Brand).logo_path,
        "version": VERSION,
        "network": _describe_network(settings),
        "offers": offers,
        "layout": shop_offers.arrange(offers),
        "refund": promise_of(gateway, slug),
        "openapi": gateway.openapi,
        "sells": gateway.wallet.problem is None,
        "takes_transfers": any(offer["by_transfer"] for offer in offers),
        "sale_problem": gateway.sale_problem(),
        "sold": shop_offers.name_sold(offers),
        "cheapest": shop_offers.find_cheapest(offers),
        "offer": next((offer for offer in offers if offer["slug"] == slug), None),
        "code": _write_code(
            gateway,
            slug if sold else first,
            serves_mcp=any("mcp" in one.manifest for one in gateway.discovery),
        ),
        "title": title,
        "page": _describe_gateway(gateway, slug, title)
        | (_describe_purchase(gateway, assets, sold) if sold else {}),
    }


def promise_of(gateway: Gateway, slug: str) -> RefundPromise:
    """Return the promise for every request to an endpoint, or to all; see `view`."""
    endpoint = gateway.catalog.find_endpoint(slug)
    if endpoint is None:
        return gateway.refund_promise()
    return gateway.refund_promises.of(price_range(endpoint)[1])


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
    label = _NETWORKS.get(settings.network, settings.network)
    chain_id = settings.chain.chain_id
    return {
        "label": f"{label} (embedded play chain)" if is_play else label,
        "isPlay": is_play,
        "isTest": not is_play and not settings.chain.has_value,
        "money": settings.chain.money,
        "chainId": chain_id,
        "caip2": settings.chain.caip2,
        "token": settings.chain.token,
        "explorer": None if is_play else _EXPLORERS.get(chain_id),
    }


def _describe_gateway(gateway: Gateway, slug: str, title: str) -> dict[str, Any]:
    """Return the data for the scripts of all pages about purchases."""
    settings = gateway.settings
    return {
        "slug": slug,
        "title": title,
        "name": settings.name,
        "baseUrl": settings.base_url,
        "contact": settings.contact_email,
        "network": _describe_network(settings),
        "reasons": {reason.value: reason.words for reason in FailureReason},
        "refund": promise_of(gateway, slug).sentence,
    }


def _describe_purchase(gateway: Gateway, assets: Assets, endpoint: Endpoint) -> dict[str, Any]:
    """Return the data for the script that sells a generation of this endpoint."""
    settings = gateway.settings
    return {
        "wallet": settings.wallet,
        "playKey": play_key_of(settings) or None,
        "transfers": shop_offers.takes_transfers(settings),
        "deploysWallets": _deploys_wallets(settings),
        "schema": {"properties": _limits_of_fields(endpoint)},
        "required": list(endpoint.required_fields),
        "extensions": list(endpoint.file_extensions),
        "fileNoun": shop_offers.name_file(endpoint),
        "sample": _choose_sample(endpoint, assets),
    }


def _limits_of_fields(endpoint: Endpoint) -> Mapping[str, Mapping[str, Any]]:
    """Return what the script reads of each field's schema; the form already has its words."""
    fields = shop_offers.describe_fields(endpoint)
    read = ("maxLength", "enum", "default")
    return {
        name: {key: schema[key] for key in read if key in schema} for name, schema in fields.items()
    }


def _deploys_wallets(settings: Settings) -> bool:
    """Whether a settlement may deploy the wallet of a new Base Account."""
    factories = {factory.lower() for factory in settings.erc6492_factories}
    known = {factory.lower() for factory in COINBASE_FACTORIES}
    return settings.deployments_per_day > 0 and bool(factories & known)


def _choose_sample(endpoint: Endpoint, assets: Assets) -> str | None:
    """Return the URL of a file for visitors without one of their own; None if we have none."""
    found = sample_files.choose(endpoint)
    if found is None or found.ending not in endpoint.file_extensions:
        return None
    return assets.url(found.asset)


def _origin(address: str) -> str:
    url = urlsplit(address)
    return f"{url.scheme}://{url.netloc}"
