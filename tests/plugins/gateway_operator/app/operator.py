"""Shared by tests of the operator's pages: a login, and headers of the gateway's own pages."""

import re
from html import unescape

from gateway_operator.sql.records import OperatorRecords

RIGHT = "correct horse"
# Browsers send this with a form of the gateway's own pages.
SAME = {"Sec-Fetch-Site": "same-origin"}


async def operator_app(gateway):
    """The Quart app of the operator's pages."""
    mount = gateway.services.lifecycle.find_mount("/admin")
    return await gateway.app.asgi_app.behind.load(mount)


async def log_in(gateway, password: str = RIGHT, **more):
    """Log the test's client in, as a program does; its cookies hold the session."""
    return await gateway.client.post("/admin/login", json={"password": password, **more})


async def post(gateway, path: str, headers=(), **form):
    """Send a form of the gateway's own pages."""
    return await gateway.client.post(path, form=form, headers=SAME | dict(headers))


def cookies_of(answer) -> dict[str, dict[str, str]]:
    """Cookies set by an answer: their values under "value", and their attributes."""
    found = {}
    for text in answer.headers.getlist("Set-Cookie"):
        first, *rest = (part.strip().partition("=") for part in text.split(";"))
        found[first[0]] = {name.lower(): value for name, _, value in rest} | {"value": first[2]}
    return found


async def text_of(answer) -> str:
    """Visible text of a page, without tags."""
    page = await answer.get_data(as_text=True)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


async def actions_of(gateway, action: str | None = None) -> list:
    """Audit rows, newest first."""
    return await OperatorRecords(gateway.services.store).actions(None, 100, action=action)
