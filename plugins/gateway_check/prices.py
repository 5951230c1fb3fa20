"""The rows `prices` and `models` of `gateway check`: low margins, and retiring models."""

import datetime as dt
import time

from gateway.catalog.catalog import Catalog
from gateway.catalog.pricing import describe_loss
from gateway.domain import Endpoint
from gateway.domain.costs import worst_sales
from gateway.plugins.manager import PluginManager
from gateway.settings import Settings
from gateway.store.data_folder import open_store
from gateway.store.endpoint_changes import changes_after
from gateway_check.database import has_database
from gateway_check.rows import Note
from gateway_operator.checklist import slugs_without_cost

# Vendors change their prices a few times a year.
_OLD_DAYS = 90
# Warn this many days before a model retires.
_WARNED_DAYS = 30


async def check_prices(settings: Settings) -> str:
    """Return a summary of the prices on sale, including those changed at runtime.

    Raises `ValueError` for an endpoint that is sold below its cost without permission.
    """
    catalog = PluginManager(disabled=settings.plugins_disabled).catalog(settings)
    try:
        if has_database(settings):
            async with open_store(settings, name="gateway check") as store:
                found = await store.read(changes_after, -1, time.time())
            if found is not None:
                catalog.change(found[1])
        return describe_prices(catalog, dt.datetime.now(dt.UTC).date())
    finally:
        await catalog.close()


async def check_models(settings: Settings) -> str:
    """Return the models that retire soon; raises `ValueError` for retired ones."""
    catalog = PluginManager(disabled=settings.plugins_disabled).catalog(settings)
    try:
        return describe_models(catalog, dt.datetime.now(dt.UTC).date())
    finally:
        await catalog.close()


def describe_models(catalog: Catalog, today: dt.date) -> str:
    """Return one line about the models that retire soon.

    Raises `ValueError` for a retired model, because its endpoint is off sale.
    """
    last_days = {
        f"{endpoint.slug} ({endpoint.model}) on {endpoint.retires}": (
            dt.date.fromisoformat(endpoint.retires) - today
        ).days
        for endpoint in catalog.offered()
        if endpoint.retires is not None
    }
    gone = [what for what, days in last_days.items() if days <= 0]
    if gone:
        raise ValueError(
            f"not sold, because the vendor stopped serving the model: {', '.join(gone)}. "
            "Name another model, or take it out of the settings."
        )
    soon = [what for what, days in last_days.items() if days <= _WARNED_DAYS]
    if soon:
        return Note(f"the vendor stops serving {', '.join(soon)}: choose another model before that")
    return f"no model retires within {_WARNED_DAYS} days, as far as is known"


def describe_prices(catalog: Catalog, today: dt.date) -> str:
    """Return one line about all prices on sale; raises `ValueError` for a forbidden loss."""
    clauses = []
    for endpoint in catalog:
        losses = [sale for sale in worst_sales(endpoint) if sale.is_loss]
        if losses and not catalog.allows_loss(endpoint.slug):
            raise ValueError(describe_loss(endpoint.slug, losses))
        clauses += [f"{endpoint.slug} below its cost, as you allow: {sale}" for sale in losses]
    clauses += _list_thin(catalog)
    clauses += [_describe_age(endpoint, today) for endpoint in catalog if is_old(endpoint, today)]
    if clauses:
        return Note("; ".join(clauses))
    if slugs_without_cost(catalog):
        return "every price is 1.2 times its cost or more, as far as costs are known"
    return "every price is 1.2 times its cost or more"


def is_old(endpoint: Endpoint, today: dt.date) -> bool:
    """Whether the endpoint's costs were last compared with the vendor's prices too long ago."""
    if endpoint.cost_checked is None:
        return False
    checked = dt.date.fromisoformat(endpoint.cost_checked)
    return (today - checked).days > _OLD_DAYS


def _list_thin(catalog: Catalog) -> list[str]:
    clauses = []
    for endpoint in catalog:
        sales = [sale for sale in worst_sales(endpoint) if sale.cost_micros is not None]
        thin = [sale for sale in sales if not sale.is_enough and not sale.is_loss]
        clauses += [f"{endpoint.slug} at less than 1.2 times its cost: {sale}" for sale in thin[:1]]
    return clauses


def _describe_age(endpoint: Endpoint, today: dt.date) -> str:
    return (
        f"the cost of {endpoint.slug} was last checked on {endpoint.cost_checked}, more than "
        f"{_OLD_DAYS} days before {today.isoformat()}: compare it with the vendor's prices"
    )
