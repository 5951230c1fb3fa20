"""Tokens of the JSON API: shown once, stored as a hash, with a scope and an expiry."""

import json
import re

import pytest

from tests.cases import each
from tests.plugins.gateway_operator.app.operator import SAME, actions_of, log_in, post, text_of

READY = "/admin/ready"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def make_token(gateway, scope: str = "read", **form) -> str:
    """Make a token on the page, then log out."""
    await log_in(gateway)
    sent = {"name": "accounting", "scope": scope, "days": "90"} | form
    page = await text_of(await post(gateway, "/admin/access/tokens", **sent))
    gateway.client.cookie_jar.clear()
    return re.search(r"ggw_[A-Za-z0-9_-]{43}", page)[0]


async def _status(gateway, token: str) -> int:
    return (await gateway.client.get(READY, headers=bearer(token))).status_code


async def test_a_token_reads_what_the_session_reads(gateway):
    token = await make_token(gateway)
    answer = await gateway.client.get(READY, headers=bearer(token))
    assert answer.status_code == 200
    assert "checks" in await answer.get_json()
    assert await _status(gateway, token[:-1]) == 401


async def test_a_token_is_shown_once_and_kept_as_a_hash(gateway):
    token = await make_token(gateway)
    await log_in(gateway)
    page = await text_of(await gateway.client.get("/admin/access"))
    assert "accounting" in page
    assert token not in page
    assert not any(token in str(action) for action in await actions_of(gateway))
    await gateway.services.store.ping()
    folder = gateway.services.settings.data_dir
    held = b"".join(path.read_bytes() for path in folder.glob("gateway.db*"))
    assert b"accounting" in held
    assert token.encode() not in held


async def test_a_token_ends_after_its_days(gateway, clock):
    token = await make_token(gateway, days="7")
    clock.offset_s += 7 * 86_400 - 60
    assert await _status(gateway, token) == 200
    clock.offset_s += 120
    assert await _status(gateway, token) == 401


async def test_a_revoked_token_opens_nothing(gateway):
    token = await make_token(gateway)
    await log_in(gateway)
    assert (
        await post(gateway, "/admin/access/tokens/revoke", name="accounting")
    ).status_code == 303
    gateway.client.cookie_jar.clear()
    assert await _status(gateway, token) == 401
    assert [action.subject for action in await actions_of(gateway, "token.revoke")] == [
        "token accounting"
    ]


@pytest.mark.parametrize("path", ["/admin", "/admin/access"])
async def test_a_token_opens_no_page(gateway, path):
    token = await make_token(gateway, "act")
    assert (await gateway.client.get(path, headers=bearer(token))).status_code == 401


async def test_a_token_makes_no_other_token(gateway):
    token = await make_token(gateway, "act")
    form = {"name": "another", "scope": "act", "days": "90"}
    for headers in (bearer(token), bearer(token) | SAME):
        answer = await gateway.client.post("/admin/access/tokens", form=form, headers=headers)
        assert answer.status_code == 401
    assert len(await actions_of(gateway, "token.new")) == 1


async def test_a_wrong_token_is_not_helped_by_a_session(gateway):
    await log_in(gateway)
    answer = await gateway.client.get(READY, headers=bearer("ggw_" + "x" * 43))
    assert answer.status_code == 401


@each(
    "form",
    [
        *({"name": ""}, {"name": "<b>"}, {"name": "x" * 41}, {"scope": "all"}, {"scope": ""}),
        *({"days": "0"}, {"days": "367"}, {"days": "x"}, {"days": "-1"}, {"days": "9" * 5000}),
    ],
)
async def test_a_wrong_token_is_not_made(gateway, form):
    await log_in(gateway)
    sent = {"name": "accounting", "scope": "read", "days": "90"} | form
    answer = await post(gateway, "/admin/access/tokens", **sent)
    assert answer.status_code == 400
    assert await actions_of(gateway, "token.new") == []


async def test_two_valid_tokens_have_two_names(gateway):
    await make_token(gateway)
    await log_in(gateway)
    form = {"name": "accounting", "scope": "read", "days": "90"}
    answer = await post(gateway, "/admin/access/tokens", **form)
    assert answer.status_code == 409
    assert "is named accounting already" in await text_of(answer)


async def test_guesses_of_tokens_and_sessions_are_limited(gateway):
    gateway.services.limits.add("task", "3/60s")
    statuses = [await _status(gateway, f"ggw_{number:043}") for number in range(5)]
    assert statuses == [401] * 3 + [429] * 2
    headers = {"Cookie": "gateway_admin=" + "x" * 43}
    assert (await gateway.client.get("/admin", headers=headers)).status_code == 429


async def test_the_command_makes_lists_and_revokes_tokens(gateway, run):
    made = await run("tokens", "new", "cron", "--scope", "act", "--days", "7")
    assert made.exit_code == 0, made.output
    token = made.stdout.strip()
    assert await _status(gateway, token) == 200
    (row,) = json.loads((await run("tokens", "list", "--json")).stdout)
    assert (row["name"], row["scope"], row["state"]) == ("cron", "act", "valid")
    assert token not in str(row)
    assert (await run("tokens", "revoke", "cron")).exit_code == 0
    assert await _status(gateway, token) == 401
    assert [action.actor.door for action in await actions_of(gateway)] == ["cli", "cli"]
    again = await run("tokens", "revoke", "cron")
    assert (again.exit_code, again.stderr) == (1, "gateway: No valid token is named cron.\n")
