"""The content of the pages for people: plain values for the templates in `static/pages`."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway.catalog.catalog import Registered
from gateway.domain import (
    DOCUMENT_EXTRACTION,
    DOCUMENT_PARSING,
    IMAGE_EDITING,
    TEXT_TO_IMAGE,
    Endpoint,
)
from gateway.domain.description import price_range, request_schema
from gateway.domain.failure_words import REASONS
from gateway.domain.refund_promise import RefundPromise
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway.version import VERSION
from gateway.web import wire
from gateway.web.routes.files import Assets
from gateway_bucket.settings import bucket_of
from gateway_shop import purchase_code
from gateway_shop.settings import play_key_of, shop_settings_of

_CAPABILITIES = {
    TEXT_TO_IMAGE: "Picture",
    IMAGE_EDITING: "Edited picture",
    DOCUMENT_PARSING: "Document",
    DOCUMENT_EXTRACTION: "Data of a document",
}
_GOODS = {
    TEXT_TO_IMAGE: "pictures",
    IMAGE_EDITING: "pictures",
    DOCUMENT_PARSING: "documents",
    DOCUMENT_EXTRACTION: "documents",
}
_OTHER_GOODS = "other generations"
_PICTURE_TO_EDIT = "sandbox.webp"
_IDEAS = {
    TEXT_TO_IMAGE: (
        "a lighthouse above a stormy sea at night",
        "a mountain lake in the evening, one small boat",
        "a city at dawn, seen from the hills",
    ),
    IMAGE_EDITING: (
        "make it winter, with falling snow",
        "a rainy night in neon light",
        "golden light of a late afternoon",
    ),
    DOCUMENT_EXTRACTION: (
        "Which dates and amounts does it name?",
        '{"type":"object","properties":{"date":{"type":"string"},"total":{"type":"number"}}}',
    ),
}
_NETWORKS = {"base": "Base", "base-sepolia": "Base Sepolia"}
_EXPLORERS = {8453: "https://basescan.org", 84532: "https://sepolia.basescan.org"}
# The endpoints of which a real result is among the built files.
_SAMPLES = {
    "sandbox-image": "picture",
    "sandbox-image-edit": "edit",
    "document-parser": "text",
    "sandbox-extract": "data",
}


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
    offers = [_describe(one, gateway) for one in gateway.catalog.everything()]
    offers = [offer for offer in offers if gateway.catalog.is_enabled(offer["slug"])]
    sold = (offer["slug"] for offer in offers if offer["on_sale"] or offer["by_transfer"])
    shown = slug or next(sold, "")
    return {
        "asset": assets.url,
        "settings": settings,
        "shop": shop_settings_of(settings),
        "version": VERSION,
        "network": _describe_network(settings),
        "offers": offers,
        "refund": promise_of(gateway, slug),
        "openapi": gateway.openapi,
        "sells": gateway.wallet.problem is None,
        "takes_transfers": any(offer["by_transfer"] for offer in offers),
        "sale_problem": gateway.sale_problem(),
        "cheapest": _cheapest(offers),
        "goods": _name_goods(offers),
        "offer": next((offer for offer in offers if offer["slug"] == slug), None),
        "code": _write_code(
            gateway, shown, serves_mcp=any("mcp" in one.manifest for one in gateway.documents)
        ),
        "page": _describe_page(gateway, assets, slug) if slug else None,
    }


def promise_of(gateway: Gateway, slug: str) -> RefundPromise:
    """Return the promise for every request to an endpoint, or to all; see `view`."""
    if not slug:
        return gateway.refund_promise()
    return gateway.refund_promises.of(price_range(gateway.catalog[slug].endpoint)[1])


def _describe(registered: Registered, gateway: Gateway) -> dict[str, Any]:
    endpoint = registered.endpoint
    lowest, highest = price_range(endpoint)
    return {
        "slug": endpoint.slug,
        "title": endpoint.title,
        "description": endpoint.description,
        "model": endpoint.model,
        "kind": _CAPABILITIES.get(endpoint.capability, endpoint.capability),
        "price": wire.decimal(endpoint.price_units),
        "highest": wire.decimal(highest) if highest > endpoint.price_units else None,
        "lowest_units": lowest,
        "on_sale": registered.sells_now and gateway.selling == "everything",
        "by_transfer": registered.sells_now and gateway.selling == "transfers",
        "sample": _choose_sample(endpoint),
        "fields": _describe_fields(endpoint),
        "makes": _GOODS.get(endpoint.capability, _OTHER_GOODS),
        "required": endpoint.required_fields,
        "extensions": endpoint.file_extensions,
        "file_noun": _name_file(endpoint),
        "ideas": _IDEAS.get(endpoint.capability, ()),
    }


def _describe_fields(endpoint: Endpoint) -> dict[str, Any]:
    """Return the schemas of the fields that a form shows."""
    fields: dict[str, Any] = request_schema(endpoint)["properties"]
    return {name: one for name, one in fields.items() if name != "prompt" or endpoint.reads_prompt}


def _name_goods(offers: Iterable[Mapping[str, Any]]) -> str:
    """Return the kinds of results on sale, such as `Pictures and documents`."""
    goods = dict.fromkeys(offer["makes"] for offer in offers if offer["on_sale"])
    return " and ".join(sorted(goods, key=[*_GOODS.values(), _OTHER_GOODS].index)).capitalize()


def _name_file(endpoint: Endpoint) -> str:
    """Return the word for the buyer's file."""
    return "picture" if endpoint.edits_pictures else "document"


def _cheapest(offers: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the lowest price on sale, in USDC."""
    lowest = min((offer["lowest_units"] for offer in offers if offer["on_sale"]), default=None)
    return None if lowest is None else wire.decimal(lowest)


def _choose_sample(endpoint: Endpoint) -> str:
    """Return the sample that a card shows.

    `picture`, `edit`, `text` and `data` are real results of the bundled providers. `page` and
    `drawing` only symbolize the kind of offer, because no vendor's results are kept here.
    """
    is_document = endpoint.capability in (DOCUMENT_PARSING, DOCUMENT_EXTRACTION)
    drawn = "page" if is_document else "drawing"
    return _SAMPLES.get(endpoint.slug, drawn)


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
        "contact": settings.contact_email or None,
        "reasons": REASONS,
        "refund": promise_of(gateway, slug).sentence,
        "schema": request_schema(endpoint),
        "required": list(endpoint.required_fields),
        "extensions": list(endpoint.file_extensions),
        "fileNoun": _name_file(endpoint),
        "samplePicture": _choose_picture(endpoint, assets),
    }


def _choose_picture(endpoint: Endpoint, assets: Assets) -> str | None:
    """Return the URL of a sample picture for visitors without one of their own."""
    takes_webp = endpoint.edits_pictures and ".webp" in endpoint.file_extensions
    return assets.url(_PICTURE_TO_EDIT) if takes_webp else None


def _origin(address: str) -> str:
    url = urlsplit(address)
    return f"{url.scheme}://{url.netloc}"
