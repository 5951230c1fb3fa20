"""The operator's login: the form, its cookie, and the page behind it."""

import asyncio
import json
import re

import attrs
import pytest

from tests.conftest import running
from tests.patience import PATIENCE_S
from tests.plugins.gateway_operator.app.operator import RIGHT, SAME, cookies_of, log_in


async def test_the_right_password_opens_a_session_of_half_a_day(gateway):
    answer = await log_in(gateway)
    assert answer.status_code == 200
    assert await answer.get_json() == {"success": True, "expiresIn": 12 * 3600}
    for name in ("gateway_admin", "gateway_device"):
        flags = cookies_of(answer)[name]
        assert {"httponly", "max-age", "path"} <= set(flags)
        assert flags["samesite"] == "Strict"
        assert "secure" not in flags  # this gateway is plain http


async def test_over_https_browsers_keep_the_cookie_to_this_host(settings, provider):
    secure = attrs.evolve(settings, base_url="https://gateway.example.com")
    async with running(secure, provider) as gateway:
        flags = cookies_of(await log_in(gateway))["__Host-gateway_admin"]
        assert "secure" in flags
        assert flags["path"] == "/"
        assert "domain" not in flags


async def test_a_form_leads_to_the_page(gateway):
    answer = await gateway.client.post("/admin/login", form={"password": RIGHT}, headers=SAME)
    assert answer.status_code in (302, 303)
    assert answer.headers["Location"] == "/admin"
    assert (await gateway.client.get("/admin")).status_code == 200


async def test_no_answer_tells_that_a_word_in_it_is_the_password(settings, provider):
    """Responses redact keys; redacting a word would confirm a guess of the password."""
    weak = settings.changed(admin_password="password")
    async with running(weak, provider) as gateway:
        answer = await log_in(gateway, "wrong")
        assert (await answer.get_json())["error"] == "The password is wrong."


@pytest.mark.parametrize("way", ["json", "form"])
async def test_a_wrong_password_is_a_401_and_no_cookie(gateway, way):
    answers = set()
    for password in ("wrong", "correct horse ", "Correct horse", "x" * 1024):
        sent = {way: {"password": password}}
        answer = await gateway.client.post("/admin/login", headers=SAME, **sent)
        assert answer.status_code == 401
        assert "Set-Cookie" not in answer.headers
        answers.add(await answer.get_data(as_text=True))
    (body,) = answers
    if way == "json":
        sentence = {"error": "The password is wrong.", "code": "INVALID_CREDENTIALS"}
        assert json.loads(body) == sentence
    else:
        assert '<p class="problem" role="alert">The password is wrong.</p>' in body
        assert 'type="password"' in body
    assert (await gateway.client.get("/admin")).status_code == 401


BAD = {
    "empty": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "null": b"null",
    "5": b"5",
    "no password": b"{}",
    "a number": b'{"password":5}',
    "no text": b'{"password":""}',
    "endless": b'{"password":"' + b"x" * 5_000 + b'"}',
    "no UTF-8": b'{"password":"\xff"}',
    "a lone surrogate": b'{"password":"\\ud800"}',
    "nested": b"[" * 60_000,
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
async def test_a_bad_login_body_is_refused_and_counts(gateway, data):
    for _ in range(5):
        answer = await gateway.client.post("/admin/login", data=data)
        assert answer.status_code in (400, 401), await answer.get_json()
        assert set(await answer.get_json()) <= {"error", "code", "details"}
    assert (await log_in(gateway)).status_code == 429


async def test_the_page_shows_what_was_sold_to_the_operator_only(gateway, payer):
    stranger = await gateway.client.get("/admin")
    assert stranger.status_code == 401
    page = await stranger.get_data(as_text=True)
    assert 'type="password"' in page
    assert "<table" not in page
    answer = await gateway.client.post(
        "/api/x402/picture", json={"prompt": "a"}, headers={"X-PAYMENT": payer.header()}
    )
    await gateway.wait((await answer.get_json())["taskId"])
    await log_in(gateway)
    page = await (await gateway.client.get("/admin")).get_data(as_text=True)
    assert re.search(r">1 sale<", page)
    assert "</i>completed" in page
    assert payer.account.address.lower() not in (await stranger.get_data(as_text=True)).lower()


async def test_the_page_runs_nothing_and_is_never_kept(gateway):
    for _ in range(2):
        answer = await gateway.client.get("/admin")
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Content-Type"].startswith("text/html")
        await log_in(gateway)


async def test_the_gateways_name_is_text_and_never_markup(settings, provider):
    named = attrs.evolve(settings, name="<script>alert(1)</script>")
    async with running(named, provider) as gateway:
        page = await (await gateway.client.get("/admin")).get_data(as_text=True)
    assert "<script>" not in page
    assert "&lt;script" in page


@pytest.mark.parametrize("value", ["", "x", "eyJhZG1pbiI6IngifQ.aaaa.bbbb"])
async def test_a_forged_session_opens_nothing(gateway, value):
    gateway.client.set_cookie("gateway.test", "gateway_admin", value)
    headers = {"Cookie": f"gateway_admin={value}"}
    assert (await gateway.client.get("/admin", headers=headers)).status_code == 401


async def test_a_session_survives_a_restart_and_ends_with_the_password(settings, provider):
    async def status(settings, headers):
        async with running(settings, provider) as gateway:
            return (await gateway.client.get("/admin", headers=headers)).status_code

    hashed = settings.changed(admin_password="", admin_password_hash=await _hash(RIGHT))
    async with running(hashed, provider) as gateway:
        value = cookies_of(await log_in(gateway))["gateway_admin"]["value"]
    headers = {"Cookie": f"gateway_admin={value}"}
    assert await status(hashed, headers) == 200
    changed = hashed.changed(admin_password_hash=await _hash("another"))
    assert await status(changed, headers) == 401


async def _hash(password: str) -> str:
    import argon2

    return argon2.PasswordHasher().hash(password)


async def test_without_a_password_one_is_made_and_printed_once(settings, provider, capsys):
    unset = settings.changed(admin_password="")
    printed = ""
    async with running(unset, provider) as gateway:
        async with asyncio.timeout(PATIENCE_S):
            while "\n" not in printed:
                await asyncio.sleep(0.02)
                printed += capsys.readouterr().out
        assert (await log_in(gateway)).status_code == 401
    password = printed.strip().rpartition(" ")[2]
    assert len(password) >= 12
    async with running(unset, provider) as gateway:
        assert (await log_in(gateway, password)).status_code == 200
    assert password not in capsys.readouterr().out
    database = (settings.data_dir / "gateway.db").read_bytes()
    assert password.encode() not in database
    assert b"$argon2id$" in database
