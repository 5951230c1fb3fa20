"""Make one now: a generation of an endpoint that is no sale, as a page and in the API."""

from http import HTTPStatus

import attrs
from quart import Response, redirect
from werkzeug.wrappers import Response as Redirect

from gateway.errors import ActionRefused, NotFound, SettingsError
from gateway_check.live import cheapest_request
from gateway_operator.actions.endpoints import find_endpoint
from gateway_operator.api.frame import API, answer, read_body
from gateway_operator.desk.wording import usdc
from gateway_operator.pages.endpoint_dialogs import PAGE, ask_endpoint
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, needs_scope, needs_session
from gateway_operator.pages.page import Ask, answer_dialog
from gateway_operator.sql.trials import MOST_AN_HOUR
from gateway_operator.state import operator
from gateway_operator.trials import Trial

_ENDPOINT = f"{PAGE}/<slug>"
_IN_API = f"{API}/endpoints/<slug>"


@blueprint.get(f"{_ENDPOINT}/make")
@needs_session
async def ask_to_make(slug: str) -> Response:
    """Show the request, and the vendor's bill."""
    return await answer_dialog(_ask_make(slug), page="endpoints")


@blueprint.post(f"{_ENDPOINT}/make")
@needs_session
async def make(slug: str) -> Redirect:
    """Begin a generation."""
    await operator().trials.begin(operator().desk, actor(), slug)
    return redirect(f"{PAGE}/{slug}/made", HTTPStatus.SEE_OTHER)


@blueprint.get(f"{_ENDPOINT}/made")
@needs_session
async def show_made(slug: str) -> Response:
    """Show the newest generation, also while it runs."""
    trial = await _newest(slug)
    return await render("made.html", page="endpoints", t=trial, now=operator().desk.now())


@blueprint.post(f"{_IN_API}/make")
@needs_scope("act")
async def api_make(slug: str) -> Response:
    """Begin a generation; GET `…/made` has its result."""
    await read_body()
    await operator().trials.begin(operator().desk, actor(), slug)
    return answer(await _without_picture(slug), HTTPStatus.ACCEPTED)


@blueprint.get(f"{_IN_API}/made")
@needs_scope("read")
async def api_made(slug: str) -> Response:
    """Return the newest generation without its picture; `ok` is null while it runs."""
    return answer(await _without_picture(slug))


def _ask_make(slug: str) -> Ask:
    endpoint = find_endpoint(operator().desk, slug).endpoint
    try:
        request = cheapest_request(endpoint)
    except SettingsError as error:
        raise ActionRefused(str(error)) from None
    cost = endpoint.cost_micros
    bill = "an amount that is not known" if cost is None else f"about {usdc(cost)} US dollars"
    facts = [("Prompt", request.prompt or "none")]
    if request.attachment is not None:
        facts.append(("File", f"{request.attachment.name}, made for this"))
    if request.resolution is not None:
        facts.append(("Resolution", request.resolution))
    facts.append(("Longest wait", f"{endpoint.timeout_s:.0f} s"))
    return ask_endpoint(
        slug,
        "make",
        title=f"Make one of {slug} now?",
        button="Make one, at my expense",
        intro="It is no sale: nobody pays, and it is in no book. The result is shown to you only, "
        f"until the gateway restarts. At most {MOST_AN_HOUR} an hour.",
        facts=facts,
        warnings=[] if cost == 0 else [f"Your vendor bills you {bill}."],
    )


async def _newest(slug: str) -> Trial:
    newest = await operator().trials.find(operator().desk, slug)
    if newest is None:
        raise NotFound(f"None of {slug} was made yet.")
    return newest


async def _without_picture(slug: str) -> Trial:
    return attrs.evolve(await _newest(slug), picture="")
