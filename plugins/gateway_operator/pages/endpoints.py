"""The page Endpoints, with a confirmation dialog for each change."""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from urllib.parse import quote

from quart import Response, g, redirect, request
from werkzeug.wrappers import Response as Redirect

from gateway.catalog.pricing import Prices, more_prices
from gateway.domain import dollars, usdc
from gateway.errors import WrongValue
from gateway_operator.actions import endpoints as actions
from gateway_operator.desk import codes
from gateway_operator.desk.endpoints import find_endpoint, read_endpoints
from gateway_operator.desk.overview import DEFAULT_PERIOD, PERIODS
from gateway_operator.pages import endpoint_dialogs as dialogs
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, is_fresh, needs_session
from gateway_operator.pages.page import Ask, answer_dialog
from gateway_operator.state import operator

_AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
# Units: the price, and those of `more_prices`.
_SEEN = re.compile(r"[0-9]{1,18}( [0-9]{1,18}){0,99}", re.ASCII)
_MORE = re.compile(r"more[0-9]{1,2}")
_MAX_TYPED = 100
_ENDPOINT = f"{dialogs.PAGE}/<slug>"
# By the value of `?done=`.
_DONE = {
    "paused": "Paused. Paid tasks will be finished; nothing more is sold.",
    "resumed": "It is on sale again.",
    "price": "The price was changed.",
    "cost": "The cost was set. It applies to results from now on.",
    "fallback": "The fallback was set. It makes new orders while the vendor fails.",
    "no-fallback": "There is no fallback any more.",
    "works": "The vendor answers: it is on sale again.",
    "silent": "The vendor still fails; the reason is shown below.",
}


@blueprint.get(dialogs.PAGE)
@needs_session
async def show_endpoints() -> Response:
    """Show cost, income and state of each endpoint."""
    found = await read_endpoints(operator().desk, request.args.get("range", DEFAULT_PERIOD))
    typed = read_search()
    asked = f"&q={quote(typed)}" if typed else ""
    return await render(
        "endpoints.html",
        page="endpoints",
        e=found,
        rows=[row for row in found.rows if row.matches(typed)],
        q=typed,
        asked=asked,
        periods=[(f"{name}{asked}", name, None) for name in PERIODS],
        done=_DONE.get(request.args.get("done", ""), ""),
    )


def read_search() -> str:
    """Return the search of the page's address, which its CSV has too."""
    return request.args.get("q", "").strip()[:_MAX_TYPED]


@blueprint.get(f"{_ENDPOINT}/pause")
@needs_session
async def ask_to_pause(slug: str) -> Response:
    """Show the dialog for a pause."""
    return await _show_dialog(dialogs.ask_pause(await actions.preview_pause(operator().desk, slug)))


@blueprint.post(f"{_ENDPOINT}/pause")
@needs_session
async def pause_endpoint(slug: str) -> Redirect:
    """Stop selling an endpoint until it is resumed."""
    await actions.pause(operator().desk, actor(), slug, reason=_reason())
    return _back(slug, "paused")


@blueprint.get(f"{_ENDPOINT}/resume")
@needs_session
async def ask_to_resume(slug: str) -> Response:
    """Show the dialog that ends a pause."""
    return await _show_dialog(dialogs.ask_resume(await find_endpoint(operator().desk, slug)))


@blueprint.post(f"{_ENDPOINT}/resume")
@needs_session
async def resume_endpoint(slug: str) -> Redirect:
    """Sell a paused endpoint again."""
    await actions.resume(operator().desk, actor(), slug, reason=_reason())
    return _back(slug, "resumed")


@blueprint.get(f"{_ENDPOINT}/price")
@needs_session
async def ask_for_price(slug: str) -> Response:
    """Show the form for new prices."""
    row = await find_endpoint(operator().desk, slug)
    registered = actions.find_endpoint(operator().desk, slug)
    return await _show_dialog(dialogs.ask_price(row, registered))


@blueprint.post(f"{_ENDPOINT}/price/ask")
@needs_session
async def ask_about_price(slug: str) -> Response:
    """Show the dialog for new prices, with margin and recent sales."""
    desk, typed = operator().desk, _typed_prices()
    preview = await actions.preview_price(desk, slug, _read_prices(slug, typed))
    has_codes = await codes.are_on(desk)
    return await _show_dialog(
        dialogs.ask_new_price(preview, typed, is_fresh=is_fresh(), has_codes=has_codes)
    )


@blueprint.post(f"{_ENDPOINT}/price")
@needs_session
async def change_price(slug: str) -> Redirect:
    """Change the prices."""
    await actions.change_price(
        operator().desk,
        actor(),
        slug,
        _read_prices(slug, _typed_prices()),
        seen=_read_seen(slug, g.form.get("seen", "")),
        reason=_reason(),
        is_fresh=is_fresh(),
    )
    return _back(slug, "price")


@blueprint.get(f"{_ENDPOINT}/cost")
@needs_session
async def ask_for_cost(slug: str) -> Response:
    """Show the form for a cost."""
    return await _show_dialog(dialogs.ask_cost(await find_endpoint(operator().desk, slug)))


@blueprint.post(f"{_ENDPOINT}/cost")
@needs_session
async def change_cost(slug: str) -> Redirect:
    """Change the cost."""
    typed = g.form.get("cost", "").strip()
    micros = _read_amount(typed, dollars)
    await actions.change_cost(
        operator().desk, actor(), slug, micros, reason=_reason(), is_fresh=is_fresh()
    )
    return _back(slug, "cost")


@blueprint.post(f"{_ENDPOINT}/try")
@needs_session
async def try_vendor(slug: str) -> Redirect:
    """Check the vendor now."""
    problem = await actions.try_vendor_now(operator().desk, actor(), slug)
    return _back(slug, "works" if problem is None else "silent")


async def _show_dialog(ask: Ask) -> Response:
    return await answer_dialog(ask, page="endpoints")


def _reason() -> str:
    return str(g.form.get("reason", "")).strip()


def _typed_prices() -> dict[str, str]:
    """Return the form's prices by field: `price`, `more0`, `more1` …."""
    return {
        name: text.strip()
        for name, text in g.form.items()
        if name == "price" or _MORE.fullmatch(name)
    }


def _read_prices(slug: str, typed: Mapping[str, str]) -> Prices | None:
    """Return the typed prices; None without any. Raises `WrongValue`."""
    names = more_prices(actions.find_endpoint(operator().desk, slug).endpoint)
    found = {
        name: _read_amount(typed.get(f"more{place}", ""), usdc) for place, name in enumerate(names)
    }
    more = {name: units for name, units in found.items() if units is not None}
    units = _read_amount(typed.get("price", ""), usdc)
    if units is None and more:
        raise WrongValue("Give the first price too: the others follow it, or stand beside it.")
    return None if units is None else Prices(units, more)


def _read_seen(slug: str, text: str) -> Prices:
    """Return the prices that the form showed; raises `WrongValue`."""
    if _SEEN.fullmatch(text) is None:
        raise WrongValue("The form lacks the price that it showed. Reload the page.")
    units, *more = map(int, text.split())
    names = more_prices(actions.find_endpoint(operator().desk, slug).endpoint)
    # The plugin has other steps by now if the lengths differ.
    return Prices(units, dict(zip([*names, *map(str, range(len(more)))], more, strict=False)))


def _read_amount(typed: str, parse: Callable[[str], int]) -> int | None:
    """Return a typed amount in units of 10⁻⁶; None for an empty one. Raises `WrongValue`.

    Stricter than Python, which accepts `1e3` and digits of other scripts.
    """
    if not typed:
        return None
    if _AMOUNT.fullmatch(typed) is None:
        raise WrongValue("Write the amount in digits with a point, such as 0.05.")
    try:
        return parse(typed)
    except ValueError as error:
        raise WrongValue(f"The amount is not accepted: {error}.") from None


def _back(slug: str, done: str) -> Redirect:
    # Forget results from before the change.
    operator().desk.shared.forget()
    return redirect(f"{dialogs.PAGE}?done={done}#{slug}", HTTPStatus.SEE_OTHER)
