"""What a gateway needs before it sells: notes of `gateway check`, and items of the overview."""

import json

import attrs
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway_operator.state import Operator
from tests.conftest import buy, running
from tests.gateway.refunds.conftest import environment
from tests.plugins.gateway_operator.app.operator import log_in, text_of

NOTES = {"refund key", "backups", "alarms", "login", "first sale"}


@pytest.fixture
def check(settings):
    def run(**variables) -> tuple[int, dict[str, dict]]:
        env = environment(settings) | variables
        result = CliRunner().invoke(main, ["check", "--json"], env=env)
        return result.exit_code, {row["name"]: row for row in json.loads(result.stdout)}

    return run


def test_a_first_check_names_what_is_missing_and_makes_no_folder(check, settings):
    code, rows = check(
        GATEWAY_BASE_URL="https://gateway.example.com",
        GATEWAY_DOCUMENTS_PRICE="abc",
        GATEWAY_SERVICE_HOST="10.0.0.1",
        GATEWAY_PORT="tcp://10.0.0.1:80",
    )
    notes = {name for name, row in rows.items() if row["result"] == "note"}
    assert notes >= NOTES | {"address", "ignored settings"}
    assert all(rows[name]["ok"] for name in notes)
    assert rows["ignored settings"]["found"].startswith("GATEWAY_DOCUMENTS_PRICE: no plugin")
    assert "an example" in rows["address"]["found"]
    assert rows["database"]["found"].startswith("none yet")
    assert not settings.data_dir.exists()
    # Nothing else is wrong, so notes alone do not fail it.
    assert code == 0, [row for row in rows.values() if not row["ok"]]


def test_settings_that_are_right_are_no_notes(check, tmp_path):
    _, rows = check(
        GATEWAY_BACKUP_URL=f"file://{tmp_path}/copies",
        GATEWAY_ALARM_URLS="json://127.0.0.1:9",
        GATEWAY_BASE_URL="https://shop.generations.dev",
        GATEWAY_REFUND_KEY="0x" + "1f" * 16 + "2c" * 16,
    )
    assert rows["settings"]["ok"], rows["settings"]["found"]
    done = ("address", "backups", "alarms", "refund key")
    assert {rows[name]["result"] for name in done} == {"ok"}
    assert "ignored settings" not in rows


def test_an_unknown_cost_is_a_note(check):
    _, rows = check(GATEWAY_OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert rows["costs"]["result"] == "note"
    assert "the cost is unknown for openai-image" in rows["costs"]["found"]


async def test_another_wallet_and_another_network_are_named(
    check_beside, settings, provider, payer, clock
):
    async with running(settings, provider, now=clock) as gateway:
        await gateway.wait((await (await buy(gateway, payer.header())).get_json())["taskId"])
    rows = await check_beside()
    assert (rows["first sale"]["result"], rows["first sale"]["found"]) == (
        "ok",
        "1 payment so far",
    )
    assert "earlier wallet" not in rows
    rows = await check_beside(GATEWAY_WALLET="0x" + "9a" * 20)
    assert rows["earlier wallet"]["result"] == "note"
    assert settings.wallet in rows["earlier wallet"]["found"].lower()
    rows = await check_beside(GATEWAY_NETWORK="base-sepolia")
    assert rows["database"]["result"] == "wrong"
    assert "belongs to network base, but GATEWAY_NETWORK is" in rows["database"]["found"]
    other = attrs.evolve(settings, wallet="0x" + "9a" * 20)
    async with running(other, provider, now=clock) as gateway:
        await log_in(gateway)
        page = await text_of(await gateway.client.get("/admin"))
    assert "Earlier wallet" in page
    # Also once the other wallet has been used by a start.
    rows = await check_beside(GATEWAY_WALLET="0x" + "9a" * 20)
    assert settings.wallet in rows["earlier wallet"]["found"].lower()


@pytest.fixture
def check_beside(check):
    import asyncio

    async def run(**variables) -> dict[str, dict]:
        return (await asyncio.to_thread(check, **variables))[1]

    return run


async def test_the_overview_has_the_same_list_with_a_way_for_each_item(gateway, payer):
    await log_in(gateway)
    gateway.services.find(Operator).desk.shared.ttl_s = 0.0
    answer = await gateway.client.get("/admin/api/v1/overview")
    listed = (await answer.get_json())["checklist"]
    assert {one["name"] for one in listed if not one["isDone"]} >= NOTES
    assert all(one["button"] for one in listed if not one["isDone"])
    page = await (await gateway.client.get("/admin")).get_data(as_text=True)
    assert "Before you sell" in page
    assert 'href="/admin/access">Set up' in page
    # One cause has one card.
    assert "No backup yet" not in page
    answer = await buy(gateway, payer.header())
    await gateway.wait((await answer.get_json())["taskId"])
    answer = await gateway.client.get("/admin/api/v1/overview")
    left = {one["name"] for one in (await answer.get_json())["checklist"] if not one["isDone"]}
    assert "first sale" not in left
