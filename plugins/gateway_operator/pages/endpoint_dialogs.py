"""Confirmation dialogs of endpoints: pause, resume, price and cost."""

import secrets
from collections.abc import Mapping

from gateway.catalog.pricing import more_prices
from gateway.catalog.registered import Registered
from gateway_operator.actions.endpoints import PausePreview, PricePreview
from gateway_operator.desk.endpoints import EndpointRow
from gateway_operator.desk.wording import counted, usdc
from gateway_operator.pages.page import Ask, Input

PAGE = "/admin/endpoints"
_UNKNOWN = "unknown"


def ask_pause(preview: PausePreview) -> Ask:
    """Return the dialog for a pause."""
    slug = preview.registered.endpoint.slug
    return ask_endpoint(
        slug,
        "pause",
        title=f"Pause {slug}?",
        button=f"Pause {slug}",
        intro="It is not sold until you resume it, even after a restart. Nobody is charged.",
        facts=[("Paid tasks queued or running", f"{preview.unfinished:,}; they will be finished")],
        reason="required",
        danger=True,
    )


def ask_resume(row: EndpointRow) -> Ask:
    """Return the dialog that ends a pause."""
    slug, pause = row.facts.slug, row.facts.pause
    why = pause.reason if pause is not None else ""
    return ask_endpoint(
        slug,
        "resume",
        title=f"Resume {slug}?",
        button=f"Sell {slug} again",
        facts=[("Paused because", why or "no reason was given")],
        reason="optional",
    )


def ask_price(row: EndpointRow, registered: Registered) -> Ask:
    """Return the form for new prices; `ask_new_price` then confirms them."""
    slug, more = row.facts.slug, more_prices(registered.endpoint)
    change = registered.change
    chosen = change.more_units if change is not None else {}
    return ask_endpoint(
        slug,
        "price/ask",
        title=f"Price of {slug}",
        button="Preview",
        facts=[
            ("Price now", f"{usdc(row.facts.price_units)} USDC"),
            ("Cost of one", _dollars(row.cost_micros)),
        ],
        inputs=[
            Input(
                name="price",
                label="New price in USDC",
                value=usdc(row.facts.price_units) if more else "",
                hint="Such as 0.05. Leave it empty to restore the price of the settings file.",
                mode="decimal",
                longest=20,
                required=False,
            ),
            *(
                Input(
                    name=f"more{place}",
                    label=f"{name}, in USDC",
                    value=usdc(units) if name in chosen else "",
                    hint=f"Now {usdc(units)}. Empty: it follows the price above.",
                    mode="decimal",
                    longest=20,
                    required=False,
                )
                for place, (name, units) in enumerate(more.items())
            ),
        ],
    )


def ask_new_price(
    preview: PricePreview, typed: Mapping[str, str], *, is_fresh: bool, has_codes: bool
) -> Ask:
    """Return the dialog for new prices; `typed` are the fields of the form."""
    slug, margin = preview.slug, preview.margin_units
    shown = " / ".join(usdc(units) for units in (preview.new_units, *preview.new_more.values()))
    seen = (preview.old_units, *preview.old_more.values())
    wants_password = preview.is_below_cost and not is_fresh
    return ask_endpoint(
        slug,
        "price",
        title=f"Sell {slug} for {shown} USDC?",
        button=f"Sell it for {shown} USDC",
        intro="Buyers who already have the old price may pay it until it expires.",
        facts=[
            ("Price now", f"{usdc(preview.old_units)} USDC"),
            ("New price", f"{usdc(preview.new_units)} USDC"),
            ("In the settings file", f"{usdc(preview.file_units)} USDC"),
            *(
                (name, f"{usdc(units)} USDC, until now {usdc(preview.old_more[name])}")
                for name, units in preview.new_more.items()
            ),
            ("Cost of one", _dollars(preview.cost_micros)),
            ("Margin of one", _UNKNOWN if margin is None else f"{usdc(margin)} USDC"),
            (
                "Sold in the last day",
                f"{counted(preview.sales, 'sale')}, {usdc(preview.sold_units)} USDC",
            ),
        ],
        warnings=[f"This is below the cost. {_upper(str(one))}." for one in preview.losses],
        fields={**typed, "seen": " ".join(map(str, seen))},
        reason="required",
        needs_password=wants_password,
        needs_code=wants_password and has_codes,
        danger=preview.is_below_cost,
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def ask_cost(row: EndpointRow) -> Ask:
    """Return the form for the cost of one result."""
    slug = row.facts.slug
    return ask_endpoint(
        slug,
        "cost",
        title=f"Cost of {slug}",
        button="Set the cost",
        intro="It applies to results from now on, if the vendor reports no cost.",
        facts=[
            ("Cost now", _dollars(row.cost_micros)),
            ("Price", f"{usdc(row.facts.price_units)} USDC"),
        ],
        inputs=[
            Input(
                name="cost",
                label="Cost of one result in US dollars",
                hint="Such as 0.011, or 0 if it is free. Leave it empty to remove your cost.",
                mode="decimal",
                longest=20,
                required=False,
            )
        ],
        reason="optional",
    )


def ask_endpoint(
    slug: str, verb: str, *, fields: dict[str, str] | None = None, **more: object
) -> Ask:
    """Return a dialog with a key that identifies a repeated form."""
    return Ask(
        action=f"{PAGE}/{slug}/{verb}",
        back=f"{PAGE}#{slug}",
        fields={"request": secrets.token_urlsafe(12)} | (fields or {}),
        **more,  # type: ignore[arg-type]
    )


def _dollars(micros: int | None) -> str:
    return _UNKNOWN if micros is None else f"{usdc(micros)} USD"
