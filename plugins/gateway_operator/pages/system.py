"""The page System, with the audit log and the alarms."""

import importlib
import secrets
from collections.abc import Mapping
from http import HTTPStatus

from quart import Response, g, redirect, request
from werkzeug.wrappers import Response as Redirect

from gateway.errors import WrongValue
from gateway.web.front.current import current_gateway
from gateway_backups.records import Kind
from gateway_operator.alarms import service
from gateway_operator.alarms.durations import parse_length
from gateway_operator.desk import backups
from gateway_operator.desk.audit import export_audit, read_audit
from gateway_operator.desk.machine import Machine, read_machine
from gateway_operator.desk.references import find_id
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, needs_session
from gateway_operator.pages.page import HEADERS
from gateway_operator.state import operator

_PAGE = "/admin/system"
_MAX_DIGITS = 18
# The choices for a mute.
_LENGTHS = (("1h", "1 hour"), ("1d", "1 day"), ("ends", "until it ends"))


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
    given = await _read_audit_filter(request.args)
    before = request.args.get("before", "")
    if before and not (before.isascii() and before.isdigit() and len(before) <= _MAX_DIGITS):
        raise WrongValue("There is no such page of the audit log.")
    page = await read_audit(operator().desk, int(before) if before else None, **given)
    return await render(
        "actions.html",
        page="system",
        p=page,
        given=given,
        request_key=secrets.token_urlsafe(12),
    )


async def _read_audit_filter(typed: Mapping[str, str]) -> dict[str, str]:
    given = {name: typed.get(name, "")[:200] for name in ("subject", "action")}
    given["subject"] = await find_id(operator().desk, given["subject"])
    return given


@blueprint.post(f"{_PAGE}/actions.csv")
@needs_session
async def export_actions() -> Response:
    """Send the actions that match the filter as CSV; the export is an action too."""
    given = await _read_audit_filter(g.form)
    pieces = await export_audit(operator().desk, actor(), **given)
    response = Response((piece.encode() async for piece in pieces), HTTPStatus.OK, HEADERS)
    response.headers["Content-Type"] = "text/csv; charset=utf-8"
    response.headers["Content-Disposition"] = 'attachment; filename="actions.csv"'
    return response


@blueprint.get("/admin/alarms")
@needs_session
async def show_alarms() -> Response:
    """Show all alarms."""
    return await render(
        "alarms.html",
        page="system",
        alarms=await service.current(operator().desk),
        watch=operator().alarms,
        lengths=_LENGTHS,
        until_it_ends=service.UNTIL_IT_ENDS,
        new_request=lambda: secrets.token_hex(8),
    )


@blueprint.post("/admin/alarms/mute")
@needs_session
async def mute_alarm() -> Redirect:
    """Mute or unmute an alarm."""
    form = g.form
    await service.mute(
        operator().desk,
        actor(),
        form.get("key", ""),
        for_s=parse_length(form.get("length", "")),
        reason=form.get("reason", ""),
    )
    return redirect("/admin/alarms", 303)


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
