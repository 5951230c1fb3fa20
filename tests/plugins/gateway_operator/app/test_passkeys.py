"""Passkeys are made on the page and accepted at the login, each signature once."""

import subprocess
import sys

import pytest

from tests.cases import each
from tests.conftest import running
from tests.plugins.gateway_operator.app.authenticator import Authenticator, encode
from tests.plugins.gateway_operator.app.operator import (
    RIGHT,
    SAME,
    actions_of,
    log_in,
    post,
    text_of,
)

LOGIN, NEW, FRESH = (f"/admin/passkeys/{what}" for what in ("login", "new", "fresh"))


@pytest.fixture
def settings(settings):
    return settings.changed(limit_login="1000/300s", limit_login_total="1000/300s")


@pytest.fixture
def laptop():
    return Authenticator("http://gateway.test", "gateway.test")


async def send(gateway, path: str, answer):
    return await gateway.client.post(path, json=answer, headers=SAME)


async def options_of(gateway, path: str) -> dict:
    answer = await gateway.client.get(path)
    assert answer.status_code == 200
    return await answer.get_json()


async def add(gateway, device: Authenticator, name: str = "laptop"):
    """Log in with the password, add a passkey, and log out."""
    await log_in(gateway)
    made = device.make(await options_of(gateway, NEW))
    answer = await send(gateway, NEW, made | {"name": name})
    gateway.client.cookie_jar.clear()
    return answer


async def test_a_passkey_logs_in_without_the_password(gateway, laptop):
    assert (await add(gateway, laptop)).status_code == 200
    answer = await send(gateway, LOGIN, laptop.sign(await options_of(gateway, LOGIN)))
    assert (answer.status_code, await answer.get_json()) == (200, {"success": True})
    page = await text_of(await gateway.client.get("/admin/access"))
    assert "laptop" in page
    login, made, *_ = await actions_of(gateway)
    assert (login.action, login.after["by"]) == ("login", "passkey")
    assert (made.action, made.subject) == ("passkey.new", "passkey laptop")


async def test_a_signature_is_taken_once_also_after_a_restart(settings, provider, laptop):
    async with running(settings, provider) as gateway:
        await add(gateway, laptop)
        signed = laptop.sign(await options_of(gateway, LOGIN))
        assert (await send(gateway, LOGIN, signed)).status_code == 200
        assert (await send(gateway, LOGIN, signed)).status_code == 401
    async with running(settings, provider) as gateway:
        assert (await send(gateway, LOGIN, signed)).status_code == 401


async def test_a_passkey_that_does_not_count_is_taken_once_as_well(gateway, laptop):
    await add(gateway, laptop)
    signed = laptop.sign(await options_of(gateway, LOGIN))
    laptop.count = -1
    signed = laptop.sign(await options_of(gateway, LOGIN))
    assert (await send(gateway, LOGIN, signed)).status_code == 200
    assert (await send(gateway, LOGIN, signed)).status_code == 401


async def test_a_challenge_ends_after_five_minutes(gateway, laptop, clock):
    await add(gateway, laptop)
    options = await options_of(gateway, LOGIN)
    clock.offset_s += 301
    answer = await send(gateway, LOGIN, laptop.sign(options))
    assert answer.status_code == 401
    assert "too late" in (await answer.get_json())["error"]


@pytest.mark.parametrize("purpose", [NEW, FRESH])
async def test_a_challenge_is_for_one_purpose(gateway, laptop, purpose):
    await add(gateway, laptop)
    await log_in(gateway)
    options = await options_of(gateway, purpose)
    gateway.client.cookie_jar.clear()
    assert (await send(gateway, LOGIN, laptop.sign(options))).status_code == 401


FORGED = {
    "another site": {"origin": "https://evil.example"},
    "another host": {"host": "evil.example"},
    "nobody there": {"flags": 0},
    "not verified": {"flags": 0x01},
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
async def test_a_signature_for_something_else_opens_nothing(gateway, laptop, change):
    await add(gateway, laptop)
    options = await options_of(gateway, LOGIN)
    for name, value in change.items():
        setattr(laptop, name, value)
    answer = await send(gateway, LOGIN, laptop.sign(options))
    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
async def test_nor_is_a_passkey_made_by_it(gateway, laptop, change):
    for name, value in change.items():
        setattr(laptop, name, value)
    assert (await add(gateway, laptop)).status_code == 400
    assert await actions_of(gateway, "passkey.new") == []


async def test_another_key_opens_nothing(gateway, laptop):
    await add(gateway, laptop)
    stranger = Authenticator(laptop.origin, laptop.host)
    options = await options_of(gateway, LOGIN)
    assert (await send(gateway, LOGIN, stranger.sign(options))).status_code == 401
    stranger.id = laptop.id
    assert (await send(gateway, LOGIN, stranger.sign(options))).status_code == 401


async def test_a_counter_that_went_back_opens_nothing(gateway, laptop):
    laptop.count = 7
    await add(gateway, laptop)
    laptop.count = 3
    answer = await send(gateway, LOGIN, laptop.sign(await options_of(gateway, LOGIN)))
    assert answer.status_code == 401


ODD = [[], {}, {"id": 5}, {"id": "x" * 9000}, {"id": "\u00e9"}, {"response": "x"}, "a", None]


@each("body", ODD)
async def test_a_strange_answer_is_refused(gateway, laptop, body):
    await add(gateway, laptop)
    assert (await send(gateway, LOGIN, body)).status_code in (400, 401)


RESPONSES = [None, {}, {"clientDataJSON": 5}, {"clientDataJSON": "!"}, {"clientDataJSON": "e30"}]
RESPONSES += [
    {"clientDataJSON": encode(b'{"challenge":5}')},
    {"clientDataJSON": encode(b"[" * 9000)},
]


@each("response", RESPONSES)
async def test_a_strange_answer_of_a_known_passkey_is_refused(gateway, laptop, response):
    await add(gateway, laptop)
    body = {"id": encode(laptop.id), "type": "public-key", "response": response}
    assert (await send(gateway, LOGIN, body)).status_code == 401


async def test_what_is_signed_right_but_lacks_parts_is_refused(gateway, laptop):
    await add(gateway, laptop)
    whole = laptop.sign(await options_of(gateway, LOGIN))
    for name in ("rawId", "type"):
        body = {key: value for key, value in whole.items() if key != name}
        assert (await send(gateway, LOGIN, body)).status_code == 401
    for name in ("authenticatorData", "signature"):
        for value in (None, "", "!", "AAAA"):
            body = whole | {"response": whole["response"] | {name: value}}
            assert (await send(gateway, LOGIN, body)).status_code == 401
    assert (await send(gateway, LOGIN, whole)).status_code == 200


async def test_only_a_fresh_session_adds_a_passkey(gateway, laptop, clock):
    await log_in(gateway)
    options = await options_of(gateway, NEW)
    clock.offset_s += 601
    assert (await gateway.client.get(NEW)).status_code == 403
    answer = await send(gateway, NEW, laptop.make(options) | {"name": "laptop"})
    assert (answer.status_code, (await answer.get_json())["code"]) == (403, "NEEDS_FRESH_LOGIN")


async def test_a_passkey_stands_for_the_password_where_it_is_asked_for_again(
    gateway, laptop, clock
):
    await add(gateway, laptop)
    await log_in(gateway)
    clock.offset_s += 601
    token = {"name": "cron", "scope": "read", "days": "9"}
    page = await (await post(gateway, "/admin/access/tokens", **token)).get_data(as_text=True)
    assert 'data-passkey="fresh"' in page
    answer = await send(gateway, FRESH, laptop.sign(await options_of(gateway, FRESH)))
    assert answer.status_code == 200
    assert "ggw_" in await text_of(await post(gateway, "/admin/access/tokens", **token))


async def test_a_removed_passkey_opens_nothing(gateway, laptop):
    await add(gateway, laptop)
    await log_in(gateway)
    await post(gateway, "/admin/access/passkeys/remove", passkey=encode(laptop.id))
    gateway.client.cookie_jar.clear()
    answer = await send(gateway, LOGIN, laptop.sign(await options_of(gateway, LOGIN)))
    assert answer.status_code == 401
    assert "laptop" in str((await actions_of(gateway, "passkey.remove"))[0].subject)


@pytest.mark.parametrize("name", ["", " ", 5, None, "\u0000"])
async def test_a_passkey_has_a_name(gateway, laptop, name):
    assert (await add(gateway, laptop, name)).status_code == 400


async def test_one_passkey_is_added_once(gateway, laptop):
    await add(gateway, laptop)
    answer = await add(gateway, laptop)
    assert answer.status_code == 409


async def test_refused_passkeys_count_as_logins(settings, provider, laptop):
    bound = settings.changed(limit_login="3/300s")
    async with running(bound, provider) as gateway:
        options = await options_of(gateway, LOGIN)
        statuses = [
            (await send(gateway, LOGIN, laptop.sign(options))).status_code for _ in range(4)
        ]
        assert statuses == [401] * 3 + [429]
        assert (await log_in(gateway)).status_code == 429
        assert len(await actions_of(gateway, "login.refused")) == 1


async def test_without_the_extra_the_page_says_how_to_have_it(gateway, monkeypatch, laptop):
    await add(gateway, laptop)
    monkeypatch.setattr("gateway_operator.desk.passkeys.are_installed", lambda: False)
    assert "data-passkey" not in await (await gateway.client.get("/admin")).get_data(as_text=True)
    answer = await send(gateway, LOGIN, laptop.sign(await options_of(gateway, LOGIN)))
    assert answer.status_code == 401
    await log_in(gateway, RIGHT)
    page = await text_of(await gateway.client.get("/admin/access"))
    assert "pip install 'generation-gateway[passkeys]'" in page


def test_a_stranger_does_not_make_the_process_import_webauthn(tmp_path):
    """An answer with an unknown passkey is refused before the import of 22 MB."""
    code = """
import asyncio, sys
from gateway_operator.desk import passkeys
from gateway.errors import WrongValue
from gateway.store import SqliteStore
from pathlib import Path

class Desk:
    now = staticmethod(lambda: 1.0)

async def main():
    async with SqliteStore(Path("gateway.db")) as Desk.store:
        try:
            await passkeys.take_answer(Desk, {"id": "x"}, passkeys.Asking(key="k", purpose="login"))
        except WrongValue:
            print("refused", "webauthn" in sys.modules)

asyncio.run(main())
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert run.stdout == "refused False\n"
