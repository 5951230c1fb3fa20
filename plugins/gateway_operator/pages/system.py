"""The page System, and the audit log."""

import importlib
import secrets
from http import HTTPStatus

from quart import Response, redirect, request
from werkzeug.wrappers import Response as Redirect

from gateway.errors import WrongValue
from gateway.web.front.current import current_gateway
from gateway_backups.records import Kind
from gateway_operator.desk import backups
from gateway_operator.desk.audit import export_audit, read_audit
from gateway_operator.desk.machine import Machine, read_machine
from gateway_operator.desk.references import find_id
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, needs_session
from gateway_operator.pages.page import HEADERS
from gateway_operator.state import operator

_PAGE = "/admin/system"
_MOST_DIGITS = 18


@blueprint.get(_PAGE)
@needs_session
async def show_system() -> Response:
    """Show the machine and the newest actions."""
    machine = await read_machine(operator().desk)
    copies = backups.of(current_gateway())
    return await render(
        "system.html",
        page="system",
        m=machine,
        running=copies.running if copies is not None else None,
        request_key=secrets.token_urlsafe(12),
        codes=_draw_codes(machine),
    )


@blueprint.post(f"{_PAGE}/backup")
@needs_session
async def begin_backup() -> Redirect:
    """Start a backup."""
    return await _begin("backup")


@blueprint.post(f"{_PAGE}/drill")
@needs_session
async def begin_drill() -> Redirect:
    """Start a drill: the newest backup is restored elsewhere and compared."""
    return await _begin("drill")


@blueprint.get(f"{_PAGE}/actions")
@needs_session
async def show_actions() -> Response:
    """Show the audit log, page by page."""
    given = {name: request.args.get(name, "")[:200] for name in ("subject", "action")}
    given["subject"] = await find_id(operator().desk, given["subject"])
    before = request.args.get("before", "")
    if before and not (before.isascii() and before.isdigit() and len(before) <= _MOST_DIGITS):
        raise WrongValue("There is no such page of the audit log.")
    page = await read_audit(operator().desk, int(before) if before else None, **given)
    return await render(
        "actions.html",
        page="system",
        p=page,
        given=given,
        request_key=secrets.token_urlsafe(12),
    )


@blueprint.post(f"{_PAGE}/actions.csv")
@needs_session
async def export_actions() -> Response:
    """Send the audit log as CSV; the export is an action too."""
    pieces = await export_audit(operator().desk, actor())
    response = Response((piece.encode() async for piece in pieces), HTTPStatus.OK, HEADERS)
    response.headers["Content-Type"] = "text/csv; charset=utf-8"
    response.headers["Content-Disposition"] = 'attachment; filename="actions.csv"'
    return response


async def _begin(kind: Kind) -> Redirect:
    await backups.begin(operator().desk, backups.of(current_gateway()), actor(), kind)
    return redirect(f"{_PAGE}#backups", HTTPStatus.SEE_OTHER)


def _draw_codes(machine: Machine) -> dict[str, str]:
    return {one.uri: _svg_address(one.uri) for key in machine.keys.values() for one in key.top_ups}


def _svg_address(text: str) -> str:
    """Return a QR code as an SVG `data:` URL, dark on white in both colour schemes."""
    drawn = importlib.import_module("segno").make(text, error="m")
    address: str = drawn.svg_data_uri(scale=4, border=4, dark="#000", light="#fff", omitsize=False)
    return address
