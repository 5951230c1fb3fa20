"""An endpoint's fallback: the form, and its route in the API."""

from http import HTTPStatus

from quart import Response, g, redirect
from werkzeug.wrappers import Response as Redirect

from gateway_operator.actions.fallbacks import FallbackPreview, choose_fallback, preview_fallback
from gateway_operator.api.frame import API, answer, read_body, text_of
from gateway_operator.desk import codes
from gateway_operator.desk.wording import join
from gateway_operator.pages.endpoint_dialogs import PAGE, ask_endpoint
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import actor, is_fresh, needs_scope, needs_session
from gateway_operator.pages.page import Ask, Input, answer_dialog
from gateway_operator.state import operator

_PATH = f"{PAGE}/<slug>/fallback"


@blueprint.get(_PATH)
@needs_session
async def ask_for_fallback(slug: str) -> Response:
    """Show the form for a fallback."""
    desk = operator().desk
    preview = await preview_fallback(desk, slug)
    ask = _ask_fallback(preview, needs_password=not is_fresh(), has_codes=await codes.are_on(desk))
    return await answer_dialog(ask, page="endpoints")


@blueprint.post(_PATH)
@needs_session
async def set_fallback(slug: str) -> Redirect:
    """Choose or remove the fallback."""
    typed, reason = g.form.get("fallback", "").strip(), g.form.get("reason", "").strip()
    desk = operator().desk
    # The list of endpoints shows its warning.
    await choose_fallback(desk, actor(), slug, typed or None, reason=reason, is_fresh=is_fresh())
    # Forget results from before the change.
    desk.shared.forget()
    done = "fallback" if typed else "no-fallback"
    return redirect(f"{PAGE}?done={done}#{slug}", HTTPStatus.SEE_OTHER)


@blueprint.post(f"{API}/endpoints/<slug>/fallback")
@needs_scope("act")
async def api_fallback(slug: str) -> Response:
    """Choose the fallback; without `fallback`, remove it."""
    body = await read_body("fallback", "reason")
    chosen = text_of(body, "fallback").strip() or None
    warning = await choose_fallback(
        operator().desk, actor(), slug, chosen, reason=text_of(body, "reason"), is_fresh=is_fresh()
    )
    return answer({"slug": slug, "fallback": chosen, "warning": warning or None})


def _ask_fallback(preview: FallbackPreview, *, needs_password: bool, has_codes: bool) -> Ask:
    endpoint, fitting = preview.registered.endpoint, preview.fitting
    slug = endpoint.slug
    warnings = ["Check that title and description promise no vendor or model by name."]
    if preview.sharing:
        shared = join(preview.sharing)
        warnings.append(f"The same vendor's account as that of {slug} serves {shared}.")
    if fitting:
        hint = f"One of: {', '.join(fitting)}. Leave it empty for none."
    else:
        hint = "No endpoint can make every order of this one."
    return ask_endpoint(
        slug,
        "fallback",
        title=f"Fallback of {slug}",
        button="Set the fallback",
        intro=f"While the vendor of {slug} fails, the fallback makes new orders, at the price of "
        f"{slug}. A pause by you still stops sales, and orders that exist stay where they are.",
        facts=[
            ("Fallback now", preview.chosen or "none"),
            ("Model that buyers order", endpoint.model or "not named"),
        ],
        warnings=warnings,
        inputs=[
            Input(
                name="fallback",
                label="Endpoint that makes its orders in an outage",
                value=preview.chosen or "",
                hint=hint,
                required=False,
            )
        ],
        reason="optional",
        needs_password=needs_password,
        needs_code=needs_password and has_codes,
        danger=True,
    )
