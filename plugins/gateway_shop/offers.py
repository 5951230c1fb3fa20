"""The offers as plain values for the templates: names, prices, samples, and their layout."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.catalog.registered import Registered
from gateway.domain import Endpoint
from gateway.domain.description import price_range, request_schema
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway.web.routes.files import Assets
from gateway_shop import kinds, prices, samples
from gateway_shop.examples import Examples
from gateway_shop.settings import play_key_of

# The number of offers from which the front page lists rows by kind, with a search.
ROWS_FROM = 12
# The number of pictures at the top of a front page of examples.
_MOSAIC = 4


def describe_all(gateway: Gateway, assets: Assets) -> list[dict[str, Any]]:
    """Return the offers that the operator has not switched off."""
    is_enabled = gateway.catalog.is_enabled
    everything = gateway.catalog.everything()
    return [_describe(one, gateway, assets) for one in everything if is_enabled(one.endpoint.slug)]


def _describe(registered: Registered, gateway: Gateway, assets: Assets) -> dict[str, Any]:
    endpoint = registered.show(registered.endpoint)
    lowest, highest = price_range(endpoint)
    on_sale = registered.sells_now and gateway.selling == "everything"
    by_transfer = registered.sells_now and gateway.selling == "transfers"
    return {
        "slug": endpoint.slug,
        "title": endpoint.title,
        "description": endpoint.description,
        "model": endpoint.model,
        "capability": endpoint.capability,
        "kind": kinds.kind_of(endpoint),
        "price": prices.amount(endpoint.price_units),
        "highest": prices.amount(highest) if highest > endpoint.price_units else None,
        "lowest_units": lowest,
        "choice_prices": prices.prices_of_choices(endpoint),
        "page_steps": prices.page_steps(endpoint),
        "total": prices.total_of_defaults(endpoint),
        "on_sale": on_sale,
        "by_transfer": by_transfer,
        # Whether a person can buy it on its page.
        "payable": on_sale or (by_transfer and takes_transfers(gateway.settings)),
        "sample": samples.sample_of(endpoint, gateway.find(Examples).of(endpoint), assets),
        "fields": describe_fields(endpoint),
        "required": endpoint.required_fields,
        "extensions": endpoint.file_extensions,
        "file_noun": name_file(endpoint),
        "ideas": endpoint.declaration.prompt.ideas,
    }


def describe_fields(endpoint: Endpoint) -> dict[str, Any]:
    """Return the schemas of the fields that a form shows."""
    fields: dict[str, Any] = request_schema(endpoint)["properties"]
    return {name: one for name, one in fields.items() if name != "prompt" or endpoint.reads_prompt}


def takes_transfers(settings: Settings) -> bool:
    """Whether the page asks people for a transfer.

    A phone that reads the code of a play chain knows another chain by its id.
    """
    return not settings.require_payer_signature and not play_key_of(settings)


def name_file(endpoint: Endpoint) -> str:
    """Return the word for the buyer's file."""
    return endpoint.file_kinds[0].name if endpoint.file_kinds else "document"


def arrange(offers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the layout of the front page.

    `one`: a single offer. `cards`: offers with a sample; the `rest` of a small shop is rows, too.
    `groups`: rows by kind, if there are many. `mosaic`: the pictures at the top.
    """
    selling = [offer for offer in offers if offer["payable"]]
    pictured = [one for one in selling if one["sample"] and one["sample"].card]
    mosaic = pictured[:_MOSAIC] if len(pictured) >= _MOSAIC else pictured[:1]
    arranged: dict[str, Any] = {"one": None, "cards": [], "rest": [], "groups": []}
    if len(offers) == 1:
        arranged["one"] = offers[0]
    elif len(offers) < ROWS_FROM:
        arranged["cards"] = [offer for offer in offers if offer["sample"]]
        arranged["rest"] = [offer for offer in offers if not offer["sample"]]
    else:
        arranged["groups"] = [
            (kind, [offer for offer in offers if offer["kind"] == kind])
            for kind in kinds.order(offer["kind"] for offer in offers)
        ]
    return arranged | {"mosaic": mosaic}


def name_sold(offers: Iterable[Mapping[str, Any]]) -> str | None:
    """Return everything that can be bought as the beginning of a sentence; None if nothing can."""
    found = [offer["kind"] for offer in offers if offer["payable"]]
    return kinds.name_all(found) if found else None


def find_cheapest(offers: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the lowest price of what can be bought, in USDC."""
    lowest = min((offer["lowest_units"] for offer in offers if offer["payable"]), default=None)
    return None if lowest is None else prices.amount(lowest)
