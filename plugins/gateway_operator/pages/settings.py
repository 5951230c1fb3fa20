"""The page Settings: purpose, value and source of each, and a form for some."""

import secrets
from http import HTTPStatus

from quart import Response, g, redirect, request
from werkzeug.wrappers import Response as Redirect

from gateway.errors import WrongValue
from gateway_operator.actions import settings as actions
from gateway_operator.desk.settings_conditions import PAGE
from gateway_operator.desk.settings_list import SettingRow, read_groups, read_state
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, is_fresh, needs_fresh, needs_session
from gateway_operator.pages.page import Ask, Input, answer_dialog
from gateway_operator.state import operator

_SETTING = f"{PAGE}/<name>"
_MAX_TYPED = 100
# By the value of `?done=`.
_DONE = {
    "set": "It was stored, and takes effect after a restart.",
    "clear": "The value was removed. That takes effect after a restart.",
}


@blueprint.get(PAGE)
@needs_session
async def show_settings() -> Response:
    """Show the settings that the page may set; all of them, or those that match."""
    g.shows_ids = True
    desk, typed = operator().desk, request.args.get("q", "").strip()[:_MAX_TYPED]
    groups, words = await read_groups(desk), typed.lower().split()
    is_all = bool(words) or "all" in request.args
    return await render(
        "settings.html",
        page="system",
        groups=[
            (group.title, rows)
            for group in groups
            if (
                rows := [
                    row for row in group.rows if _is_shown(group.title, row, words, is_all=is_all)
                ]
            )
        ],
        is_all=is_all,
        count=sum(len(group.rows) for group in groups),
        state=await read_state(desk),
        has_secret=bool(str(desk.settings.settings_secret)),
        how_to_begin=actions.HOW_TO_BEGIN,
        q=typed,
        done=_DONE.get(request.args.get("done", ""), ""),
    )


@blueprint.get(_SETTING)
@needs_fresh
async def ask_for_setting(name: str) -> Response:
    """Show the form for a value."""
    g.shows_ids = True
    row = await actions.find_settable(operator().desk, name)
    text = "" if row.is_secret else row.stored_value or ("" if row.is_default else row.value)
    return await answer_dialog(_ask_value(row, text), page="system")


@blueprint.post(_SETTING)
@needs_session
async def set_setting(name: str) -> Redirect | Response:
    """Store a value; a wrong one leads back to the form."""
    desk, form = operator().desk, g.form
    # A value may look like a task's id, and must not be shortened.
    g.shows_ids = True
    row = await actions.find_settable(desk, name)
    text = form.get(_field_of(row), "")
    try:
        await actions.choose(
            desk,
            actor(),
            name,
            text,
            seen_at=_read_seen(form.get("seen", "")),
            reason=form.get("reason", "").strip(),
            is_fresh=is_fresh(),
        )
    except WrongValue as error:
        ask = _ask_value(row, "" if row.is_secret else text)
        return await answer_dialog(
            ask,
            page="system",
            problem=str(error),
            reason=form.get("reason", ""),
            status=error.status,
        )
    return _back(name, "set")


@blueprint.get(f"{_SETTING}/clear")
@needs_session
async def ask_to_clear(name: str) -> Response:
    """Show the dialog that removes a stored value."""
    groups = await read_groups(operator().desk)
    rows = {row.name: row for group in groups for row in group.rows}
    if name not in rows or rows[name].stored_at is None:
        raise WrongValue("This setting has no value from the page.")
    row = rows[name]
    ask = Ask(
        title=f"Remove the value of {row.variable}?",
        action=f"{PAGE}/{name}/clear",
        back=f"{PAGE}#{name}",
        button="Remove it",
        intro="After a restart the gateway uses its default.",
        fields=_fields_of(row),
        reason="optional",
        danger=True,
    )
    return await answer_dialog(ask, page="system")


@blueprint.post(f"{_SETTING}/clear")
@needs_session
async def clear_setting(name: str) -> Redirect:
    """Remove a stored value."""
    await actions.clear(
        operator().desk,
        actor(),
        name,
        seen_at=_read_seen(g.form.get("seen", "")),
        reason=g.form.get("reason", "").strip(),
        is_fresh=is_fresh(),
    )
    return _back(name, "clear")


def _is_shown(title: str, row: SettingRow, words: list[str], *, is_all: bool) -> bool:
    if not (is_all or row.on_page or row.stored_at is not None):
        return False
    text = f"{title} {row.variable} {row.about} {row.source}".lower()
    return all(word in text for word in words)


def _ask_value(row: SettingRow, text: str) -> Ask:
    """Return the form; a secret is never in it."""
    facts = [("Now", row.value or "empty"), ("From", row.source)]
    if row.is_pending and row.stored_at is not None:
        facts.append(("After a restart", "another value" if row.is_secret else row.stored_value))
    hint = row.about if not row.example else f"{row.about} Example: {row.example}"
    return Ask(
        title=f"Set {row.variable}",
        action=f"{PAGE}/{row.name}",
        back=f"{PAGE}#{row.name}",
        button="Store it",
        intro="It is stored encrypted, and takes effect after a restart.",
        facts=facts,
        fields=_fields_of(row),
        inputs=[
            Input(
                name=_field_of(row),
                label="New value",
                value=text,
                hint=hint,
                longest=actions.MAX_CHARS,
                is_secret=row.is_secret,
            )
        ],
        reason="optional",
    )


def _field_of(row: SettingRow) -> str:
    return "secret_value" if row.is_secret else "value"


def _fields_of(row: SettingRow) -> dict[str, str]:
    seen = "" if row.stored_at is None else repr(row.stored_at)
    return {"request": secrets.token_urlsafe(12), "seen": seen}


def _read_seen(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise WrongValue("The form lacks the value that it showed. Reload the page.") from None


def _back(name: str, done: str) -> Redirect:
    # Forget the conditions from before the change.
    operator().desk.shared.forget()
    return redirect(f"{PAGE}?done={done}#{name}", HTTPStatus.SEE_OTHER)
