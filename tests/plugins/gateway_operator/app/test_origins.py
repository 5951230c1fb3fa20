"""Requests that change something must come from the gateway's own pages."""

import attrs
import pytest

from tests.cases import each
from tests.conftest import running
from tests.plugins.gateway_operator.app.operator import RIGHT, SAME, actions_of, log_in

PATHS = [
    "/admin/logout",
    "/admin/fresh",
    "/admin/access/sessions/end",
    "/admin/access/codes/begin",
    "/admin/access/codes/confirm",
    "/admin/access/codes/off",
    "/admin/access/tokens",
    "/admin/access/tokens/revoke",
    "/admin/access/passkeys/remove",
    "/admin/passkeys/new",
    "/admin/passkeys/fresh",
]
FOREIGN = {
    "another site": {"Origin": "https://evil.example"},
    "no site": {"Origin": "null"},
    "nothing": {},
    "cross-site": {"Sec-Fetch-Site": "cross-site"},
    "a neighbour": {"Sec-Fetch-Site": "same-site"},
    "a typed address": {"Sec-Fetch-Site": "none"},
    "both": {"Sec-Fetch-Site": "cross-site", "Origin": "http://gateway.test"},
    "another port": {"Origin": "http://gateway.test:8081"},
    "https": {"Origin": "https://gateway.test"},
    "a longer name": {"Origin": "http://gateway.test.evil.example"},
    "a local one that is not ours": {"Origin": "http://localhost:9999"},
    "rebound": {"Origin": "http://evil.example", "Host": "evil.example"},
}


@each("path", PATHS)
async def test_without_a_session_nothing_is_done(gateway, path):
    answer = await gateway.client.post(path, form={}, headers=SAME)
    assert answer.status_code == 401
    assert await actions_of(gateway) == []


@pytest.mark.parametrize("path", PATHS)
async def test_a_form_of_another_site_does_nothing(gateway, path):
    await log_in(gateway)
    answer = await gateway.client.post(path, form={}, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert len(await actions_of(gateway)) == 1


@each("headers", FOREIGN)
async def test_a_forged_origin_ends_no_session(gateway, headers):
    await log_in(gateway)
    answer = await gateway.client.post("/admin/logout", form={}, headers=headers)
    assert answer.status_code == 403
    page = await answer.get_data(as_text=True)
    assert "nothing was done" in page
    assert "GATEWAY_BASE_URL" in page
    assert (await gateway.client.get("/admin")).status_code == 200


@each("headers", FOREIGN)
async def test_no_other_site_logs_the_operator_in(gateway, headers):
    answer = await gateway.client.post("/admin/login", form={"password": RIGHT}, headers=headers)
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers


@each("name", [name for name in FOREIGN if name != "nothing"])
async def test_nor_with_json(gateway, name):
    sent = {"password": RIGHT}
    answer = await gateway.client.post("/admin/login", json=sent, headers=FOREIGN[name])
    assert answer.status_code == 403
    assert (await answer.get_json())["code"] == "FOREIGN_ORIGIN"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://gateway.test"},
        {"Origin": "http://localhost:8080", "Host": "localhost:8080"},
        {"Origin": "http://127.0.0.1:8080", "Host": "127.0.0.1:8080"},
    ],
)
async def test_the_gateways_own_pages_may(gateway, headers):
    answer = await log_in(gateway)
    secret = answer.headers["Set-Cookie"].partition(";")[0]
    answer = await gateway.client.post(
        "/admin/logout", form={}, headers=headers | {"Cookie": secret}
    )
    assert answer.status_code == 303


async def test_behind_https_the_plain_origin_is_foreign(settings, provider):
    secure = attrs.evolve(settings, base_url="https://gateway.example.com")
    async with running(secure, provider) as gateway:
        for origin, status in (("http", 403), ("https", 200)):
            headers = {"Origin": f"{origin}://gateway.example.com"}
            sent = {"password": RIGHT}
            answer = await gateway.client.post("/admin/login", json=sent, headers=headers)
            assert answer.status_code == status


async def test_an_error_is_a_page_for_people_and_json_for_programs(gateway):
    await log_in(gateway)
    form = await gateway.client.post(
        "/admin/access/tokens/revoke", form={"name": "x"}, headers=SAME
    )
    assert form.status_code == 409
    assert form.headers["Content-Type"].startswith("text/html")
    assert "No valid token is named x." in await form.get_data(as_text=True)
    for answer in (form, await gateway.client.get("/admin/passkeys/login")):
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "same-origin"
