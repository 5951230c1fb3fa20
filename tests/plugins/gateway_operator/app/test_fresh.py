"""Sending money or changing permissions requires the password again after ten minutes."""

import pytest
from quart import g

from gateway.errors import NeedsFresh
from gateway_operator.pages import guards
from tests.conftest import running
from tests.plugins.gateway_operator.app.operator import (
    RIGHT,
    SAME,
    actions_of,
    log_in,
    operator_app,
    post,
    text_of,
)

TEN_MINUTES_S = 600
TOKEN = {"name": "accounting", "scope": "read", "days": "30"}


async def _make_token(gateway, **more):
    return await post(gateway, "/admin/access/tokens", **TOKEN, **more)


async def test_for_ten_minutes_after_the_login_no_password_is_asked_for(gateway, clock):
    await log_in(gateway)
    clock.offset_s += TEN_MINUTES_S - 30
    assert "ggw_" in await text_of(await _make_token(gateway))


async def test_after_that_a_page_asks_for_it_and_repeats_the_form(gateway, clock):
    await log_in(gateway)
    clock.offset_s += TEN_MINUTES_S + 1
    answer = await _make_token(gateway)
    page = await answer.get_data(as_text=True)
    assert answer.status_code == 403
    assert 'action="/admin/access/tokens"' in page
    for name, value in TOKEN.items():
        assert f'<input type="hidden" name="{name}" value="{value}">' in page
    assert 'name="password"' in page
    assert 'role="alert"' not in page
    assert "ggw_" in await text_of(await _make_token(gateway, password=RIGHT))
    # The session is fresh again, and the audit log has the reason.
    revoked = await post(gateway, "/admin/access/tokens/revoke", name="accounting")
    assert revoked.status_code == 303
    assert "ggw_" in await text_of(await _make_token(gateway))
    (again,) = await actions_of(gateway, "session.fresh")
    assert again.after == {"by": "password"}


async def test_a_wrong_password_does_nothing_and_counts(gateway, clock):
    await log_in(gateway)
    clock.offset_s += TEN_MINUTES_S + 1
    for _ in range(5):
        answer = await _make_token(gateway, password="wrong")
        page = await answer.get_data(as_text=True)
        assert answer.status_code == 403
        assert "The password is wrong." in page
        assert 'value="wrong"' not in page
    answer = await _make_token(gateway, password=RIGHT)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert await actions_of(gateway, "token.new") == []


async def test_a_stolen_session_gets_no_new_name_for_more_guesses_of_the_password(gateway, clock):
    """Guesses in a known browser count apart, so a session must not choose another browser."""
    await log_in(gateway)
    clock.offset_s += TEN_MINUTES_S + 1
    statuses = []
    for _ in range(7):
        cookies = gateway.client.cookie_jar
        (device,) = [one for one in cookies if one.name == "gateway_device"]
        cookies.clear(device.domain, device.path, device.name)
        assert (await gateway.client.get("/admin")).status_code == 200
        statuses.append((await _make_token(gateway, password="wrong")).status_code)
    assert statuses == [403] * 5 + [429] * 2


async def test_a_page_repeats_every_value_of_a_form_and_no_markup(gateway, clock):
    await log_in(gateway)
    clock.offset_s += TEN_MINUTES_S + 1
    sent = "task=a&task=b&note=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
    answer = await gateway.client.post(
        "/admin/fresh",
        data=sent,
        headers=SAME | {"Content-Type": "application/x-www-form-urlencoded"},
    )
    page = await answer.get_data(as_text=True)
    assert page.count('name="task"') == 2
    assert "<script>alert" not in page


async def test_giving_the_password_by_itself_leads_back(gateway, clock):
    await log_in(gateway)
    clock.offset_s += TEN_MINUTES_S + 1
    answer = await post(gateway, "/admin/fresh", next="/admin/access")
    assert answer.status_code == 403
    answer = await post(gateway, "/admin/fresh", next="/admin/access", password=RIGHT)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/admin/access")


@pytest.mark.parametrize("asks", ["guard", "service"])
async def test_an_action_that_asks_for_it_by_itself_is_repeated_as_well(
    settings, provider, asks, clock
):
    async with running(settings, provider, now=clock) as gateway:
        await log_in(gateway)

        @guards.needs_session
        async def pay():
            if asks == "guard":
                guards.require_fresh()
            elif not guards.is_fresh():
                raise NeedsFresh("over the daily cap")
            return f"paid {g.form['task']}"

        (await operator_app(gateway)).view_functions["operators.admin.revoke_token"] = pay
        clock.offset_s += TEN_MINUTES_S + 1
        answer = await post(gateway, "/admin/access/tokens/revoke", task="t1")
        assert answer.status_code == 403
        assert 'name="task" value="t1"' in await answer.get_data(as_text=True)
        answer = await post(gateway, "/admin/access/tokens/revoke", task="t1", password=RIGHT)
        assert await answer.get_data(as_text=True) == "paid t1"


async def test_a_form_that_is_sent_twice_is_carried_out_once(gateway):
    await log_in(gateway)
    first = await _make_token(gateway, request="r1")
    again = await _make_token(gateway, request="r1")
    assert "ggw_" in await text_of(first)
    assert "It was not done again." in await text_of(again)
    assert len(await actions_of(gateway, "token.new")) == 1


async def test_a_new_password_ends_what_is_fresh(settings, provider):
    async with running(settings, provider) as gateway:
        answer = await log_in(gateway)
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    changed = settings.changed(admin_password="another")
    async with running(changed, provider) as gateway:
        answer = await gateway.client.post(
            "/admin/access/tokens", form=TOKEN, headers=SAME | {"Cookie": cookie}
        )
        assert answer.status_code == 401
