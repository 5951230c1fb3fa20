"""Renders the operator's pages and dialogs."""

import functools
import hashlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import attrs
from quart import Response, current_app, render_template

from gateway.web.front.current import current_gateway
from gateway.web.routes.files import Assets, static_folder
from gateway_operator.desk.badges import Badges, read_badges
from gateway_operator.pages.formats import FILTERS
from gateway_operator.state import operator

ASSETS_PATH = "/admin/assets/"
# Key, title and path, in the order of the navigation.
PAGES = (
    ("overview", "Overview", "/admin"),
    ("refunds", "Refunds", "/admin/refunds"),
    ("tasks", "Tasks", "/admin/tasks"),
    ("payments", "Payments", "/admin/payments"),
    ("endpoints", "Endpoints", "/admin/endpoints"),
    ("books", "Books", "/admin/books"),
    ("system", "System", "/admin/system"),
)
_CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": _CSP,
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    # With `no-referrer`, browsers would send `Origin: null` with forms.
    "Referrer-Policy": "same-origin",
}
_FILES = ("admin.css", "live.js", "passkeys.js")


@attrs.define
class OperatorAssets(Assets):
    """The stylesheet and scripts, which need no build.

    A digest of the content in the name allows permanent caching.
    """

    prefix: str = ASSETS_PATH

    def _built_names(self) -> Mapping[str, str]:
        if self._names is None:
            self._names = {name: _name_by_content(self.folder / name) for name in _FILES}
        return self._names

    def _path(self, name: str) -> Path:
        source = next(source for source, built in self._built_names().items() if built == name)
        return self.folder / source


@attrs.frozen(kw_only=True)
class Input:
    """An input field of a dialog."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    # `decimal` or `numeric`, for a phone's keyboard.
    mode: str = ""
    longest: int = 100
    required: bool = True
    # Not shown while it is typed, and in no answer.
    is_secret: bool = False


@attrs.frozen(kw_only=True)
class Ask:
    """A confirmation dialog, rendered by `confirm.html`."""

    title: str
    # The paths of the form and of Cancel.
    action: str
    back: str
    # Such as "Give back 0.32 USDC to 4 payers".
    button: str
    intro: str = ""
    facts: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()
    # Hidden: values to compare, and the request's key.
    fields: Mapping[str, str] = attrs.field(factory=dict)
    inputs: Sequence[Input] = ()
    # `required`, `optional`, or empty for no reason.
    reason: str = ""
    # The sentence of a required checkbox; empty for none.
    needs_tick: str = ""
    needs_password: bool = False
    needs_code: bool = False
    danger: bool = False


async def answer_page(
    template: str,
    *,
    page: str,
    badges: Badges | None = None,
    status: int = HTTPStatus.OK,
    **values: Any,
) -> Response:
    """Return one of the operator's pages; `page` is its key in `PAGES`, empty before login."""
    if badges is None and page:
        badges = await read_badges(operator().desk)
    text = await render_template(
        f"admin/{template}",
        name=current_gateway().settings.name,
        pages=PAGES,
        page=page,
        asset=operator_assets().url,
        badges=badges,
        **values,
    )
    return Response(text, status, HEADERS)


async def answer_dialog(
    ask: Ask, *, page: str, problem: str = "", reason: str = "", status: int = HTTPStatus.OK
) -> Response:
    """Return a dialog.

    If the form was rejected, `problem` is the error and `reason` the typed reason.
    """
    return await answer_page(
        "confirm.html", page=page, ask=ask, problem=problem, given_reason=reason, status=status
    )


def operator_assets() -> OperatorAssets:
    """Return the assets of the current app.

    Also installs the template filters, because the template environment is created only for the
    first page.
    """
    environment = current_app.jinja_env
    if "usdc" not in environment.filters:
        environment.filters.update(FILTERS)
    return _assets()


@functools.cache
def _assets() -> OperatorAssets:
    return OperatorAssets(static_folder() / "admin")


def _name_by_content(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8].upper()
    return f"{path.stem}-{digest}{path.suffix}"
