"""Login codes: set up, required, valid once, and switched off if the phone is lost."""

import re
import time

import pyotp
import pytest

from tests.conftest import running
from tests.plugins.gateway_operator.app.operator import (
    RIGHT,
    SAME,
    actions_of,
    log_in,
    post,
    text_of,
)

WRONG = "The password or the code is wrong."


@pytest.fixture
def settings(settings):
    return settings.changed(limit_login="1000/300s", limit_login_total="1000/300s")


@pytest.fixture(autouse=True)
def _time_stands_still(clock):
    """A code is valid for half a minute, which could end between two lines of a test."""
    clock.frozen_at = time.time()


async def set_up(gateway) -> pyotp.TOTP:
    """Switch codes on as a person does; return the phone's secret."""
    await log_in(gateway)
    await post(gateway, "/admin/access/codes/begin")
    page = await text_of(await gateway.client.get("/admin/access"))
    phone = pyotp.TOTP(re.search(r"type the secret: ([A-Z2-7]{32})", page)[1])
    code = phone.at(gateway.services.now())
    answer = await post(gateway, "/admin/access/codes/confirm", first_code=f"{code[:3]} {code[3:]}")
    assert answer.status_code == 303
    gateway.client.cookie_jar.clear()
    return phone


async def test_a_login_asks_for_the_code_as_well(gateway, clock):
    phone = await set_up(gateway)
    clock.offset_s += 60
    form = await (await gateway.client.get("/admin")).get_data(as_text=True)
    assert 'autocomplete="one-time-code"' in form
    for code in ({}, {"code": ""}, {"code": "000000"}, {"code": "abcdef"}, {"code": "1" * 99}):
        answer = await log_in(gateway, **code)
        assert answer.status_code == 401
        assert (await answer.get_json())["error"] == WRONG
    assert (await log_in(gateway, code=phone.at(clock()))).status_code == 200
    login = (await actions_of(gateway, "login"))[0]
    assert login.after["by"] == "password and code"


async def test_the_right_code_does_not_tell_that_the_password_is_wrong(gateway, clock):
    phone = await set_up(gateway)
    clock.offset_s += 60
    code = phone.at(clock())
    answer = await log_in(gateway, "wrong", code=code)
    assert (await answer.get_json())["error"] == WRONG
    # The wrong password has not used the code up.
    assert (await log_in(gateway, code=code)).status_code == 200


async def test_a_code_is_taken_once_also_after_a_restart(settings, provider, clock):
    async with running(settings, provider, now=clock) as gateway:
        phone = await set_up(gateway)
        # The code that switched them on is used up, too.
        assert (await log_in(gateway, code=phone.at(clock()))).status_code == 401
        clock.offset_s += 60
        code, older = phone.at(clock()), phone.at(clock() - 30)
        assert (await log_in(gateway, code=code)).status_code == 200
        assert (await log_in(gateway, code=code)).status_code == 401
        assert (await log_in(gateway, code=older)).status_code == 401
    async with running(settings, provider, now=clock) as gateway:
        assert (await log_in(gateway, code=code)).status_code == 401
        clock.offset_s += 30
        assert (await log_in(gateway, code=phone.at(clock()))).status_code == 200


@pytest.mark.parametrize(("late_s", "status"), [(-30, 200), (30, 200), (-90, 401), (90, 401)])
async def test_a_phone_may_be_half_a_minute_off(gateway, clock, late_s, status):
    phone = await set_up(gateway)
    clock.offset_s += 300
    assert (await log_in(gateway, code=phone.at(clock() + late_s))).status_code == status


async def test_codes_are_on_once_a_code_was_given(gateway, clock):
    await log_in(gateway)
    await post(gateway, "/admin/access/codes/begin")
    answer = await post(gateway, "/admin/access/codes/confirm", first_code="000000")
    assert answer.status_code == 400
    assert "clock of the phone" in await text_of(answer)
    gateway.client.cookie_jar.clear()
    assert (await log_in(gateway)).status_code == 200


async def test_the_secret_is_shown_as_a_drawing_until_it_is_confirmed(gateway):
    await log_in(gateway)
    await post(gateway, "/admin/access/codes/begin")
    page = await (await gateway.client.get("/admin/access")).get_data(as_text=True)
    assert "<svg" in page
    assert "style=" not in page
    phone = pyotp.TOTP(re.search(r"<code>([A-Z2-7]{32})</code>", page)[1])
    await post(gateway, "/admin/access/codes/confirm", first_code=phone.at(gateway.services.now()))
    page = await (await gateway.client.get("/admin/access")).get_data(as_text=True)
    assert phone.secret not in page
    assert not any(phone.secret in str(action) for action in await actions_of(gateway))


async def test_what_is_fresh_needs_the_code_as_well(gateway, clock):
    phone = await set_up(gateway)
    clock.offset_s += 60
    await log_in(gateway, code=phone.at(clock()))
    clock.offset_s += 700
    page = await (await post(gateway, "/admin/access/codes/off")).get_data(as_text=True)
    assert 'name="code"' in page
    answer = await post(gateway, "/admin/access/codes/off", password=RIGHT)
    assert (answer.status_code, WRONG in await text_of(answer)) == (403, True)
    code = phone.at(clock())
    answer = await post(gateway, "/admin/access/codes/off", password=RIGHT, code=code)
    assert answer.status_code == 303
    gateway.client.cookie_jar.clear()
    assert (await log_in(gateway)).status_code == 200


async def test_the_secret_is_shown_to_who_gave_the_password_a_moment_ago(gateway, clock):
    await log_in(gateway)
    await post(gateway, "/admin/access/codes/begin")
    assert "type the secret" in await text_of(await gateway.client.get("/admin/access"))
    clock.offset_s += 601
    page = await text_of(await gateway.client.get("/admin/access"))
    assert "type the secret" not in page
    assert "Set codes up" in page


async def test_a_set_up_does_not_replace_codes_that_are_on(gateway, clock):
    phone = await set_up(gateway)
    clock.offset_s += 60
    await log_in(gateway, code=phone.at(clock()))
    answer = await post(gateway, "/admin/access/codes/begin")
    assert answer.status_code == 409
    clock.offset_s += 60
    assert (await log_in(gateway, code=phone.at(clock()))).status_code == 200


async def test_without_the_phone_the_machine_switches_codes_off(gateway, run):
    await set_up(gateway)
    assert (await log_in(gateway)).status_code == 401
    result = await run("codes", "off")
    assert result.exit_code == 0, result.output
    assert "Codes are off" in result.output
    assert (await log_in(gateway)).status_code == 200
    (off,) = await actions_of(gateway, "codes.off")
    assert off.actor.door == "cli"
    result = await run("codes", "off")
    assert (result.exit_code, result.stderr) == (1, "gateway: Codes are off already.\n")


async def test_guesses_of_a_code_are_limited_like_passwords(settings, provider, clock):
    bound = settings.changed(limit_login="5/300s", limit_login_total="60/300s")
    async with running(bound, provider, now=clock) as gateway:
        phone = await set_up(gateway)
        statuses = [(await log_in(gateway, code=f"{number:06}")).status_code for number in range(7)]
        assert statuses[:4] == [401] * 4
        assert statuses[-1] == 429
    async with running(bound, provider, now=clock) as gateway:
        clock.offset_s += 60
        assert (await log_in(gateway, code=phone.at(clock()))).status_code == 429


async def test_a_form_gives_the_code_too(gateway, clock):
    phone = await set_up(gateway)
    clock.offset_s += 60
    form = {"password": RIGHT, "code": phone.at(clock())}
    answer = await gateway.client.post("/admin/login", form=form, headers=SAME)
    assert answer.status_code == 303
