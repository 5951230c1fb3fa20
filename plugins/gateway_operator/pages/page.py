"""What every page of the operator's has: the bar with the pages, headers, and its own files."""

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
# Key, title and path of each page, in the order of the bar.
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
    # `no-referrer` would make browsers send `Origin: null` with the forms of these pages.
    "Referrer-Policy": "same-origin",
}
_FILES = ("admin.css", "live.js", "passkeys.js")


@attrs.define
class OperatorAssets(Assets):
    """The stylesheet and the scripts of the operator's pages.

    They are served as they are written; a digest of the content in the name lets browsers keep
    them.
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
    """One line to fill in, on a page that asks before it acts."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    # `decimal` or `numeric` for a phone's keyboard.
    mode: str = ""
    longest: int = 100
    required: bool = True


@attrs.frozen(kw_only=True)
class Ask:
    """A question before an action: `confirm.html` shows it."""

    title: str
    # The path that the form is sent to, and the one that Cancel leads to.
    action: str
    back: str
    # What the button does, in words such as "Give back 0.32 USDC to 4 payers".
    button: str
    intro: str = ""
    facts: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()
    # Hidden fields: what is repeated and compared, and the request's own key.
    fields: Mapping[str, str] = attrs.field(factory=dict)
    inputs: Sequence[Input] = ()
    # `required`, `optional`, or empty where no reason is asked.
    reason: str = ""
    # The sentence of a box that must be ticked; empty for none.
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
    """Return one of the operator's pages; `page` is its key in `PAGES`, empty before the login."""
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


async def answer_question(
    ask: Ask, *, page: str, problem: str = "", reason: str = "", status: int = HTTPStatus.OK
) -> Response:
    """Return the page that asks before an action.

    After a form that could not be accepted, `problem` says why and `reason` is what was typed.
    """
    return await answer_page(
        "confirm.html", page=page, ask=ask, problem=problem, given_reason=reason, status=status
    )


def operator_assets() -> OperatorAssets:
    """Return the files of the app that handles the current request.

    The filters of the templates are put in on the way: before a page is asked for, the templates'
    environment is not made.
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
