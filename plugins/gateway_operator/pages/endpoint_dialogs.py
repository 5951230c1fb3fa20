"""What is asked before an endpoint is paused, resumed, or sold at another price or cost."""

import secrets

from gateway_operator.actions.endpoints import PausePreview, PricePreview
from gateway_operator.desk.endpoints import EndpointRow
from gateway_operator.desk.wording import counted, usdc
from gateway_operator.pages.page import Ask, Input

PAGE = "/admin/endpoints"
_UNKNOWN = "unknown"


def ask_pause(preview: PausePreview) -> Ask:
    """Return the question before a pause."""
    slug = preview.registered.endpoint.slug
    return _ask(
        slug,
        "pause",
        title=f"Pause {slug}?",
        button=f"Pause {slug}",
        intro="It is sold no more until you resume it, also after a restart. Nobody is charged.",
        facts=[("Paid tasks that wait or run", f"{preview.unfinished:,}; they are finished")],
        reason="required",
        danger=True,
    )


def ask_resume(row: EndpointRow) -> Ask:
    """Return the question before a pause ends."""
    slug, pause = row.facts.slug, row.facts.pause
    why = pause.reason if pause is not None else ""
    return _ask(
        slug,
        "resume",
        title=f"Resume {slug}?",
        button=f"Sell {slug} again",
        facts=[("Paused because", why or "no reason was given")],
        reason="optional",
    )


def ask_price(row: EndpointRow) -> Ask:
    """Return the page that takes another price; the next page asks once more."""
    slug = row.facts.slug
    return _ask(
        slug,
        "price/ask",
        title=f"Price of {slug}",
        button="Show what that means",
        facts=[
            ("Price now", f"{usdc(row.facts.price_units)} USDC"),
            ("Cost of one", _dollars(row.cost_micros)),
        ],
        inputs=[
            Input(
                name="price",
                label="New price in USDC",
                hint="Such as 0.05. Leave it empty to go back to the price of the settings file.",
                mode="decimal",
                longest=20,
                required=False,
            )
        ],
    )


def ask_new_price(preview: PricePreview, typed: str, *, is_fresh: bool, has_codes: bool) -> Ask:
    """Return the question before another price."""
    slug, margin = preview.slug, preview.margin_units
    warning = (
        f"This is below the cost: each sale loses {usdc(-margin)} USDC."
        if preview.is_below_cost and margin is not None
        else ""
    )
    wants_password = preview.is_below_cost and not is_fresh
    return _ask(
        slug,
        "price",
        title=f"Sell {slug} for {usdc(preview.new_units)} USDC?",
        button=f"Sell it for {usdc(preview.new_units)} USDC",
        intro="A price that a buyer was told a moment ago stays good for its lifetime. Prices by "
        "resolution or pages change by the same factor.",
        facts=[
            ("Price now", f"{usdc(preview.old_units)} USDC"),
            ("New price", f"{usdc(preview.new_units)} USDC"),
            ("In the settings file", f"{usdc(preview.file_units)} USDC"),
            ("Cost of one", _dollars(preview.cost_micros)),
            ("Margin of one", _UNKNOWN if margin is None else f"{usdc(margin)} USDC"),
            (
                "Sold in the last day",
                f"{counted(preview.sales, 'sale')}, {usdc(preview.sold_units)} USDC",
            ),
        ],
        warnings=[warning] if warning else [],
        fields={"price": typed, "seen": str(preview.old_units)},
        reason="required",
        needs_password=wants_password,
        needs_code=wants_password and has_codes,
        danger=preview.is_below_cost,
    )


def ask_cost(row: EndpointRow) -> Ask:
    """Return the page that takes what one result costs."""
    slug = row.facts.slug
    return _ask(
        slug,
        "cost",
        title=f"Cost of {slug}",
        button="Set the cost",
        intro="It counts for results from now on, where the vendor itself tells no cost.",
        facts=[
            ("Cost now", _dollars(row.cost_micros)),
            ("Price", f"{usdc(row.facts.price_units)} USDC"),
        ],
        inputs=[
            Input(
                name="cost",
                label="Cost of one result in US dollars",
                hint="Such as 0.011; 0 for what costs nothing. Leave it empty to take yours back.",
                mode="decimal",
                longest=20,
                required=False,
            )
        ],
        reason="optional",
    )


def _ask(slug: str, verb: str, *, fields: dict[str, str] | None = None, **more: object) -> Ask:
    """Return a question about one endpoint, with a key that makes a repeated form known."""
    return Ask(
        action=f"{PAGE}/{slug}/{verb}",
        back=f"{PAGE}#{slug}",
        fields={"request": secrets.token_urlsafe(12)} | (fields or {}),
        **more,  # type: ignore[arg-type]
    )


def _dollars(micros: int | None) -> str:
    return _UNKNOWN if micros is None else f"{usdc(micros)} USD"
