"""The operator's JSON API: permissions, repeated requests, and errors that name the problem."""

import json
from pathlib import Path

import attrs
import pytest

from gateway_operator.state import Operator
from tests.conftest import running
from tests.gateway.refunds.conftest import fail_once
from tests.plugins.gateway_operator.app.operator import SAME, actions_of, log_in, operator_app
from tests.plugins.gateway_operator.app.test_tokens import bearer

API = "/admin/api/v1"


@pytest.fixture
def settings(settings):
    return attrs.evolve(settings, refund_daily_cap="0.03")


async def token_of(gateway, scope: str = "act") -> dict[str, str]:
    """Make a token; return the headers of a program that uses it."""
    from gateway_operator.audit_log import Actor
    from gateway_operator.desk.tokens import make_token

    made = await make_token(
        gateway.services.find(Operator).desk,
        Actor(door="cli", name="root"),
        f"a {scope} token",
        scope,
    )
    return bearer(made.secret)


async def get(gateway, path: str, headers):
    answer = await gateway.client.get(f"{API}{path}", headers=headers)
    assert answer.status_code == 200, await answer.get_data(as_text=True)
    assert answer.headers["Cache-Control"] == "no-store"
    return await answer.get_json()


async def post(gateway, path: str, headers, key: str = "k1", **body):
    return await gateway.client.post(
        f"{API}{path}", json=body, headers=headers | {"Idempotency-Key": key}
    )


@pytest.fixture
async def owed(gateway, payer, provider) -> dict:
    """A due refund, as the API shows it."""
    task = await fail_once(gateway, payer, provider)
    return {
        "task": task["taskId"],
        "seen": {"amountUnits": 20_000, "recipient": payer.account.address.lower()},
    }


async def api_rules(gateway, method: str) -> list[str]:
    """Paths of the API with a method; their task does not exist."""
    return [
        rule.rule.replace("<task_id>", "none").replace("<slug>", "picture").replace("<key>", "gas")
        for rule in (await operator_app(gateway)).url_map.iter_rules()
        if rule.rule.startswith(API) and method in rule.methods
    ]


async def test_nothing_is_shown_or_done_without_a_session_or_a_token(gateway):
    assert len(await api_rules(gateway, "GET")) >= 3
    assert len(await api_rules(gateway, "POST")) >= 6
    for method in ("GET", "POST"):
        for path in await api_rules(gateway, method):
            for headers in ({}, bearer("ggw_x"), {"Cookie": "gateway_admin=x"}, SAME):
                answer = await gateway.client.open(path, method=method, headers=headers)
                assert answer.status_code == 401, path
                assert (await answer.get_json())["code"] == "INVALID_CREDENTIALS"


async def test_a_token_that_may_read_does_nothing(gateway):
    headers = await token_of(gateway, "read")
    before = len(await actions_of(gateway))
    for path in await api_rules(gateway, "POST"):
        answer = await gateway.client.post(path, headers=headers | {"Idempotency-Key": "k"})
        assert answer.status_code == 403, path
        assert (await answer.get_json())["code"] == "WRONG_SCOPE"
    assert len(await actions_of(gateway)) == before


async def test_a_session_acts_from_the_gateways_own_pages_only(gateway):
    await log_in(gateway)
    for path in await api_rules(gateway, "POST"):
        for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            answer = await gateway.client.post(path, headers=headers | {"Idempotency-Key": "k"})
            assert answer.status_code == 403, path
            assert (await answer.get_json())["code"] == "FOREIGN_ORIGIN"


async def test_a_program_with_a_token_needs_no_origin(gateway, owed):
    headers = await token_of(gateway)
    answer = await post(
        gateway,
        f"/refunds/{owed['task']}/approve",
        headers | {"Sec-Fetch-Site": "cross-site"},
        **owed["seen"],
    )
    assert answer.status_code == 200


async def test_each_post_has_a_key(gateway):
    headers = await token_of(gateway)
    for path in await api_rules(gateway, "POST"):
        for key in ({}, {"Idempotency-Key": ""}, {"Idempotency-Key": "x" * 129}):
            answer = await gateway.client.post(path, headers=headers | key)
            assert answer.status_code == 400, path
            assert "Idempotency-Key" in (await answer.get_json())["error"]


async def test_a_refund_is_approved_once_for_one_key(gateway, owed):
    headers = await token_of(gateway)
    path = f"/refunds/{owed['task']}/approve"
    first = await post(gateway, path, headers, **owed["seen"])
    again = await post(gateway, path, headers, **owed["seen"])
    assert (first.status_code, again.status_code) == (200, 200)
    (refund,) = (await again.get_json())["refunds"]
    assert (refund["task"], refund["decision"]) == (owed["task"], "approved")
    (action,) = await actions_of(gateway, "refund.approve")
    assert (action.actor.door, action.actor.name) == ("api", "a act token")
    other = await post(gateway, f"/refunds/{owed['task']}/reject", headers, reason="x")
    assert other.status_code == 409


async def test_a_refund_that_is_not_as_it_was_seen_is_not_approved(gateway, owed):
    headers = await token_of(gateway)
    path = f"/refunds/{owed['task']}/approve"
    for change in ({"amountUnits": 19_999}, {"recipient": "0x" + "11" * 20}):
        answer = await post(gateway, path, headers, **(owed["seen"] | change))
        assert (answer.status_code, (await answer.get_json())["code"]) == (409, "STALE_FORM")
    assert await actions_of(gateway, "refund.approve") == []


async def test_what_asks_for_the_password_is_not_for_tokens(gateway, owed, payer):
    headers = await token_of(gateway)
    path = f"/refunds/{owed['task']}/approve"
    sent = owed["seen"] | {"to": "0x" + "12" * 20, "reason": "the payer asked"}
    answer = await post(gateway, path, headers, **sent)
    assert (answer.status_code, (await answer.get_json())["code"]) == (403, "NEEDS_FRESH_LOGIN")
    await log_in(gateway)
    answer = await post(gateway, path, SAME, **sent)
    assert answer.status_code == 200
    (refund,) = (await answer.get_json())["refunds"]
    assert refund["recipient"] == "0x" + "12" * 20


async def test_a_refund_is_rejected_and_taken_up_again(gateway, owed):
    headers = await token_of(gateway)
    path = f"/refunds/{owed['task']}"
    answer = await post(gateway, f"{path}/reject", headers)
    assert (answer.status_code, (await answer.get_json())["error"]) == (400, "reason is missing.")
    answer = await post(gateway, f"{path}/reject", headers, reason="it was delivered")
    assert (await answer.get_json())["refunds"][0]["decision"] == "rejected"
    assert (await actions_of(gateway, "refund.reject"))[0].reason == "it was delivered"
    answer = await post(gateway, f"{path}/approve", headers, "k2", **owed["seen"])
    assert answer.status_code == 409
    seen = owed["seen"] | {"isRejected": True}
    answer = await post(gateway, f"{path}/approve", headers, "k5", **seen)
    assert (await answer.get_json())["refunds"][0]["decision"] == "approved"
    answer = await post(gateway, f"{path}/take-back", headers, "k3")
    assert (await answer.get_json())["refunds"][0]["decision"] is None
    answer = await post(gateway, f"{path}/retry", headers, "k4", **owed["seen"])
    assert answer.status_code == 409


AS_SEEN = {"amountUnits": 1, "recipient": ""}
WRONG_BODIES = [
    *("", "[]", '"x"', "{", "[" * 9000, '{"recipient":""}'),
    *('{"amountUnits":1e400,"recipient":""}', '{"amountUnits":1,"recipient":null}'),
    *(
        json.dumps(AS_SEEN | change)
        for change in (
            *({"recipient": 5}, {"recipient": "x" * 501}, {"recipient": ["x"]}),
            *({"amountUnits": -1}, {"amountUnits": 1.5}, {"amountUnits": True}),
            *({"amountUnits": "1"}, {"amountUnits": 2**70}, {"acceptsUnproven": "yes"}),
            *({"extra": 1}, {"reason": 5}, {"to": 5}),
        )
    ),
]


@pytest.mark.parametrize("body", WRONG_BODIES, ids=lambda body: body[:40])
async def test_a_wrong_body_is_refused_with_a_sentence(gateway, body):
    headers = await token_of(gateway)
    answer = await gateway.client.post(
        f"{API}/refunds/none/approve", data=body, headers=headers | {"Idempotency-Key": "k"}
    )
    assert answer.status_code == 400
    assert set(await answer.get_json()) <= {"error", "code", "details"}


async def test_the_overview_is_the_pages(gateway, owed):
    headers = await token_of(gateway, "read")
    found = await get(gateway, "/overview?range=24h", headers)
    assert found["money"]["sold"] == 1
    assert found["money"]["takenUnits"] == 20_000
    assert found["selling"] in ("yes", "some", "no", "unknown")
    answer = await gateway.client.get(f"{API}/overview?range=1y", headers=headers)
    assert answer.status_code == 400


async def test_the_audit_log_comes_in_pages(gateway):
    headers = await token_of(gateway, "read")
    for _ in range(3):
        await log_in(gateway, "right or not")
    await log_in(gateway)
    gateway.client.cookie_jar.clear()
    first = await get(gateway, "/actions?limit=2", headers)
    assert [row["action"] for row in first["actions"]] == ["login", "login.refused"]
    rest = await get(gateway, f"/actions?before={first['before']}", headers)
    assert [row["action"] for row in rest["actions"]] == ["token.new"]
    assert rest["before"] is None
    only = await get(gateway, "/actions?action=login", headers)
    assert len(only["actions"]) == 1


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=x", "before=-1", "before=" + "9" * 30]
)
async def test_a_page_has_its_bounds(gateway, query):
    headers = await token_of(gateway, "read")
    answer = await gateway.client.get(f"{API}/actions?{query}", headers=headers)
    assert answer.status_code == 400


async def test_a_copy_begins_and_is_told_of(settings, provider, tmp_path):
    kept = settings.changed(backup_url=f"file://{tmp_path / 'copies'}", backup_hours=1000.0)
    async with running(kept, provider) as gateway:
        headers = await token_of(gateway)
        assert (await get(gateway, "/backups", headers))["isOn"] is True
        answer = await post(gateway, "/backups", headers)
        assert answer.status_code in (202, 409), await answer.get_data(as_text=True)
    async with running(settings, provider) as gateway:
        headers = await token_of(gateway, "read")
        assert (await get(gateway, "/backups", headers))["isOn"] is False


async def test_no_answer_of_the_api_holds_a_key(gateway, owed):
    headers = await token_of(gateway, "read")
    secret = str(gateway.services.settings.settlement_key).removeprefix("0x")
    for path in await api_rules(gateway, "GET"):
        answer = await gateway.client.get(path, headers=headers)
        page = await answer.get_data(as_text=True)
        assert secret not in page
        assert headers["Authorization"].partition(" ")[2] not in page
        assert json.loads(page)


async def test_every_route_of_the_api_is_documented(gateway):
    text = (Path(__file__).parents[4] / "docs" / "admin-api.md").read_text("utf-8")
    app = await operator_app(gateway)
    rules = {rule.rule for rule in app.url_map.iter_rules() if rule.rule.startswith(API)}
    assert [rule for rule in rules if f"`{rule.removeprefix(API)}" not in text] == []
