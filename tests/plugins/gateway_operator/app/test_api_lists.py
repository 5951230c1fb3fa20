"""Tokens that read get the lists as JSON, with the numbers of the pages."""

import json

import pytest

from gateway_operator.state import Operator
from tests.cases import each
from tests.conftest import buy
from tests.gateway.refunds.conftest import fail_once
from tests.plugins.gateway_operator.app.operator import actions_of, log_in, text_of
from tests.plugins.gateway_operator.app.test_api import API, get, post, token_of

LISTS = ("/refunds", "/tasks", "/tasks/some", "/payments", "/transfers/unclaimed", "/system")


@pytest.fixture
async def reader(gateway):
    gateway.services.find(Operator).desk.unused.pause_s = 0.0
    return await token_of(gateway, "read")


@each("path", LISTS)
async def test_strangers_are_shown_no_list(gateway, path):
    assert (await gateway.client.get(API + path)).status_code == 401


async def test_json_and_page_tell_the_same_of_refunds_and_tasks(gateway, reader, payer, provider):
    task = await fail_once(gateway, payer, provider)
    owed = await get(gateway, "/refunds", reader)
    assert (owed["kind"], owed["owedUnits"]) == ("undecided", 20_000)
    (refund,) = owed["refunds"]
    assert refund["row"]["taskId"] == task["taskId"][:18]
    assert refund["decisions"][0] == ["approve", "Approve"]
    listed = await get(gateway, "/tasks?state=owed", reader)
    assert [one["row"]["id"] for one in listed["tasks"]] == [task["taskId"][:18]]
    assert (await get(gateway, "/tasks?state=completed", reader))["tasks"] == []
    detail = await get(gateway, f"/tasks/{task['taskId'][:18]}", reader)
    assert detail["listed"] == listed["tasks"][0]
    assert "a boat" not in str(detail)
    await log_in(gateway)
    page = await text_of(await gateway.client.get(f"/admin/tasks/{task['taskId']}"))
    for moment in detail["timeline"]:
        assert moment["title"] in page


async def test_no_list_and_no_csv_opens_a_result(gateway, reader, payer, provider):
    """A task's id gives access to its result, which the audit log would not record."""
    done = await (await buy(gateway, payer.header())).get_json()
    await gateway.wait(done["taskId"])
    owed = await fail_once(gateway, payer, provider)
    ids, actor = [done["taskId"], owed["taskId"]], await token_of(gateway, "act")
    short, said = owed["taskId"][:18], []
    for path in (f"/refunds/{short}/reject", f"/refunds/{short}/reject"):
        answer = await post(gateway, path, actor, "k1", reason="abuse")
        assert answer.status_code == 200
        said.append(await answer.get_data(as_text=True))
    refused = await post(
        gateway, f"/refunds/{short}/retry", actor, "k2", amountUnits=1, recipient="x"
    )
    assert refused.status_code == 409
    said.append(await refused.get_data(as_text=True))
    paths = ("/refunds?state=rejected", "/tasks", f"/tasks/{ids[0][:18]}", f"/tasks/{short}")
    paths += ("/payments", "/actions", f"/actions?subject={short}", "/overview")
    said += [json.dumps(await get(gateway, path, reader)) for path in paths]
    await log_in(gateway)
    page = {"Sec-Fetch-Site": "same-origin"}
    log = await gateway.client.post("/admin/system/actions.csv", form={}, headers=page)
    books = await gateway.client.get("/admin/books/export.csv")
    pages = ("/admin", "/admin/tasks", f"/admin/tasks/{short}", "/admin/refunds?state=rejected")
    shown = [await gateway.client.get(path) for path in (*pages, "/admin/system/actions")]
    assert {answer.status_code for answer in shown} == {200}
    said += [await answer.get_data(as_text=True) for answer in (log, books, *shown)]
    assert sum(short in text for text in said) >= 8
    assert [one for one in ids for text in said if one in text or one[19:] in text] == []


async def test_only_a_look_that_is_written_down_shows_what_opens_a_result(gateway, payer):
    done = await (await buy(gateway, payer.header())).get_json()
    await gateway.wait(done["taskId"])
    await log_in(gateway)
    path = f"/admin/tasks/{done['taskId'][:18]}"
    page = {"Sec-Fetch-Site": "same-origin"}
    form = {"what": "outputs", "reason": "a complaint"}
    look = await gateway.client.post(f"{path}/look", form=form, headers=page)
    assert f"/files/{done['taskId']}" in await look.get_data(as_text=True)
    (action,) = await actions_of(gateway, "output.look")
    assert action.subject == done["taskId"]


async def test_a_reference_finds_its_task(gateway, reader, payer):
    sold = [await (await buy(gateway, payer.header())).get_json() for _ in range(2)]
    newest, older = [one["row"]["id"] for one in (await get(gateway, "/tasks", reader))["tasks"]]
    assert {newest, older} == {one["taskId"][:18] for one in sold}
    for query in (f"q={older}", f"before={newest}"):
        found = await get(gateway, f"/tasks?{query}", reader)
        assert [one["row"]["id"] for one in found["tasks"]] == [older]
    unknown = await gateway.client.get(f"{API}/tasks/01234567-0123-4123", headers=reader)
    assert unknown.status_code == 404


async def test_json_tells_payments_and_marks_transfers(gateway, reader, payer):
    await buy(gateway, payer.header())
    tx_hash = payer.transfer(30_000)
    assert (await get(gateway, "/payments", reader))["open"] == []
    await gateway.services.find(Operator).desk.unused.refresh(60.0)
    (one,) = (await get(gateway, "/transfers/unclaimed", reader))["transfers"]
    assert (one["txHash"], one["amountUnits"], one["mark"]) == (tx_hash, 30_000, None)
    path = f"/transfers/{tx_hash}/{one['logIndex']}/seen"
    assert (await post(gateway, path, reader, reason="x")).status_code == 403
    actor = await token_of(gateway, "act")
    for _ in range(2):
        answer = await post(gateway, path, actor, reason="sent back")
        assert await answer.get_json() == {"seen": True}
    assert len(await actions_of(gateway, "transfer.seen")) == 1
    (one,) = (await get(gateway, "/transfers/unclaimed", reader))["transfers"]
    assert one["mark"]["reason"] == "sent back"


async def test_json_tells_of_the_machine_without_secrets(gateway, reader, gas_key):
    machine = await get(gateway, "/system", reader)
    roles = {key["role"]: key["address"] for key in machine["keys"].values()}
    assert roles["settlement"] == gas_key.address
    settings = {one["variable"]: one["value"] for one in machine["settings"]}
    assert (settings["GATEWAY_SETTLEMENT_KEY"], settings["GATEWAY_NETWORK"]) == ("set", "base")
    assert gas_key.key.hex() not in str(machine)


@pytest.mark.parametrize(
    "path", ["/refunds?state=lost", "/refunds?before=x", "/tasks?state=lost", "/tasks?day=1"]
)
async def test_a_list_that_cannot_be_is_refused_with_a_sentence(gateway, reader, path):
    answer = await gateway.client.get(API + path, headers=reader)
    assert answer.status_code == 400
    assert (await answer.get_json())["error"].endswith(".")
