"""The operator's sessions are listed, can be ended one by one, and expire."""

import pytest

from gateway_operator.desk.conditions import find_conditions
from gateway_operator.desk.facts import read_facts
from gateway_operator.sql.sessions import MAX_OPEN
from gateway_operator.state import Operator
from tests.conftest import running
from tests.plugins.gateway_operator.app.operator import (
    RIGHT,
    SAME,
    actions_of,
    cookies_of,
    log_in,
    post,
    text_of,
)

HOUR_S = 3600


async def secret_of(gateway, **more) -> str:
    """Log in; return the value of the browser's cookie."""
    return cookies_of(await log_in(gateway, **more))["gateway_admin"]["value"]


async def opens(gateway, secret: str, path: str = "/admin/access") -> bool:
    """Whether a cookie opens a page, in a browser without other cookies."""
    gateway.client.cookie_jar.clear()
    answer = await gateway.client.get(path, headers={"Cookie": f"gateway_admin={secret}"})
    assert answer.status_code in (200, 401)
    return answer.status_code == 200


async def _short_names(gateway) -> list[str]:
    rows = await gateway.services.store.read(
        lambda db: db.execute("SELECT id FROM operator_sessions ORDER BY created_at").fetchall()
    )
    return [row[0][:8] for row in rows]


async def test_a_session_ends_after_half_a_day_without_use(gateway, clock):
    secret = await secret_of(gateway)
    clock.offset_s += 11 * HOUR_S
    assert await opens(gateway, secret)
    clock.offset_s += 11 * HOUR_S
    assert await opens(gateway, secret)
    clock.offset_s += 13 * HOUR_S
    assert not await opens(gateway, secret)


async def test_a_session_ends_after_a_week_of_use(gateway, clock):
    secret = await secret_of(gateway)
    for _ in range(16):
        clock.offset_s += 10 * HOUR_S
        assert await opens(gateway, secret)
    clock.offset_s += 10 * HOUR_S
    assert not await opens(gateway, secret)


async def test_a_session_that_was_ended_elsewhere_opens_nothing(gateway):
    stolen = await secret_of(gateway)
    gateway.client.cookie_jar.clear()
    own = await secret_of(gateway)
    first, second = await _short_names(gateway)
    page = await text_of(await gateway.client.get("/admin/access"))
    assert first in page
    assert f"{second} this one" in page
    answer = await post(gateway, "/admin/access/sessions/end", session=first)
    assert answer.status_code == 303
    assert not await opens(gateway, stolen)
    assert await opens(gateway, own)
    (ended,) = await actions_of(gateway, "session.end")
    assert (ended.actor.name, ended.subject) == (second, f"session {first}")


async def test_all_other_sessions_are_ended_at_once(gateway):
    others = []
    for _ in range(3):
        others.append(await secret_of(gateway))
        gateway.client.cookie_jar.clear()
    own = await secret_of(gateway)
    await post(gateway, "/admin/access/sessions/end", which="others")
    assert [await opens(gateway, other) for other in others] == [False] * 3
    assert await opens(gateway, own)


async def test_logging_out_ends_the_session_and_not_only_the_cookie(gateway):
    secret = await secret_of(gateway)
    answer = await post(gateway, "/admin/logout")
    assert answer.status_code == 303
    assert cookies_of(answer)["gateway_admin"]["value"] == ""
    assert (await gateway.client.get("/admin")).status_code == 401
    assert not await opens(gateway, secret)


async def test_the_database_holds_no_cookie(gateway):
    secret = await secret_of(gateway)
    await gateway.services.store.ping()
    folder = gateway.services.settings.data_dir
    held = b"".join(path.read_bytes() for path in folder.glob("gateway.db*"))
    assert b"operator_sessions" in held
    assert secret.encode() not in held


async def test_only_the_newest_hundred_sessions_are_open(settings, provider):
    wide = settings.changed(limit_login="1000/1s", limit_login_total="1000/1s")
    async with running(wide, provider) as gateway:
        first = await secret_of(gateway)
        for _ in range(MAX_OPEN):
            gateway.services.find(Operator).password.matches = _always
            gateway.client.cookie_jar.clear()
            newest = await secret_of(gateway)
        assert not await opens(gateway, first)
        assert await opens(gateway, newest)


async def _always(*_, **__) -> bool:
    return True


async def test_a_login_and_what_was_refused_before_are_in_the_audit_log(gateway):
    await log_in(gateway, "wrong")
    await log_in(gateway)
    login, refused = await actions_of(gateway)
    assert (login.action, login.actor.door) == ("login", "page")
    assert login.after["by"] == "password"
    assert (refused.action, refused.after) == ("login.refused", {"refused": 1})
    assert RIGHT not in str(login)


async def test_a_flood_of_logins_leaves_one_audit_row_an_hour(settings, provider, clock):
    bound = settings.changed(limit_login_total="10/300s", client_ip_header="X-Client")
    async with running(bound, provider, now=clock) as gateway:
        gateway.services.find(Operator).password.matches = _never
        tried = 0
        for number in range(90):
            clock.offset_s += 60
            answer = await gateway.client.post(
                "/admin/login",
                json={"password": "wrong"},
                headers={"X-Client": f"10.0.{number % 7}.1"},
            )
            tried += answer.status_code == 401
        rows = await actions_of(gateway, "login.refused")
        assert tried > 50
        assert len(rows) == 2
        gateway.services.find(Operator).password.matches = _always
        await log_in(gateway)
        page = await text_of(await gateway.client.get("/admin/access"))
        assert "10.0.3.1" in page


async def _never(*_, **__) -> bool:
    return False


async def test_the_log_of_refused_logins_is_bounded(gateway, monkeypatch):
    from gateway_operator.desk import sessions
    from gateway_operator.sql import logins

    monkeypatch.setattr(logins, "_MAX_ROWS", 5)
    for number in range(20):
        await sessions.note_refused(gateway.services.find(Operator).desk, f"192.0.2.{number}")
    rows = await sessions.list_refused(gateway.services.find(Operator).desk)
    assert len(rows) <= 5
    assert rows[0].address == "192.0.2.19"


@pytest.mark.parametrize("path", ["/admin/refunds?tab=paid", "/admin/access"])
async def test_a_login_leads_to_the_page_that_was_asked_for(gateway, path):
    page = await (await gateway.client.get("/admin/access")).get_data(as_text=True)
    assert 'name="next" value="/admin/access"' in page
    answer = await gateway.client.post(
        "/admin/login", form={"password": RIGHT, "next": path}, headers=SAME
    )
    assert (answer.status_code, answer.headers["Location"]) == (303, path)


@pytest.mark.parametrize(
    "path",
    [
        *("//evil.example/admin", "https://evil.example/admin", "/\\evil.example", "http:admin"),
        *("/api/health", "", "javascript:alert(1)", "/admin\r\nX: y", "/administer"),
    ],
)
async def test_a_login_leads_to_no_other_place(gateway, path):
    answer = await gateway.client.post(
        "/admin/login", form={"password": RIGHT, "next": path}, headers=SAME
    )
    assert (answer.status_code, answer.headers["Location"]) == (303, "/admin")


async def test_a_login_from_an_unknown_browser_ends_by_it_was_me(gateway):
    await log_in(gateway)
    desk = gateway.services.find(Operator).desk
    desk.shared.ttl_s = 0.0

    async def cards() -> list:
        found = find_conditions(await read_facts(desk))
        return [one for one in found if one.condition == "login"]

    (card,) = await cards()
    assert card.button == "It was me"
    dialog = await text_of(await gateway.client.get(card.href))
    assert "Was this login yours?" in dialog
    number = card.href.rpartition("=")[2]
    assert (await post(gateway, "/admin/access/mine", login="999999")).status_code == 404
    assert len(await cards()) == 1
    assert (await post(gateway, "/admin/access/mine", login=number)).status_code == 303
    assert await cards() == []
    (action,) = await actions_of(gateway, "login.mine")
    assert action.subject == number
