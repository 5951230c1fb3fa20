"""The page System: keys, copies, settings without secrets, and the audit log."""

import asyncio
import csv
import io

import attrs
import pytest

from gateway.errors import ChainUnavailable
from gateway_backups.schedule import Backups
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.desk.audit import read_audit
from gateway_operator.desk.machine import read_machine
from gateway_operator.sql.records import OperatorRecords
from gateway_operator.state import Operator
from tests.conftest import running
from tests.patience import PATIENCE_S
from tests.plugins.gateway_operator.app.operator import SAME, actions_of, log_in, post, text_of

PAGE = "/admin/system"
SECRET = "MARKER-secret-4711"


@pytest.fixture
async def gateway(gateway):
    await log_in(gateway)
    return gateway


async def note(gateway, action: str = "test.done", **changes) -> None:
    new = NewAction(
        actor=Actor(door="cli", name="anna"), at=gateway.services.now(), action=action, subject="x"
    )
    await OperatorRecords(gateway.services.store).note(attrs.evolve(new, **changes))


async def test_keys_are_shown_with_balance_and_a_code_to_top_them_up(gateway, gas_key):
    page = await (await gateway.client.get(PAGE)).get_data(as_text=True)
    assert gas_key.address in page
    assert "1.000000" in page
    assert 'src="data:image/svg+xml' in page
    machine = await read_machine(gateway.services.find(Operator).desk)
    key = machine.keys[next(one.address for one in machine.facts.keys if one.role == "settlement")]
    assert [one.uri for one in key.top_ups] == [f"ethereum:{gas_key.address}@8453"]


async def test_chain_clock_disk_and_queue_have_their_numbers(gateway):
    text = await text_of(await gateway.client.get(PAGE))
    for words in ("Newest block", "Clock", "RPC endpoint 1", "free", "Database", "nothing waits"):
        assert words in text


async def test_the_page_answers_while_the_chain_is_silent(gateway, monkeypatch):
    async def silent(*_, **__):
        raise ChainUnavailable("The chain does not answer now.")

    for name in ("head", "newest_head", "call_uint", "gas_balance", "fees"):
        monkeypatch.setattr(gateway.services.chain, name, silent)
    text = await text_of(await gateway.client.get(PAGE))
    assert "The chain does not answer now." in text
    assert "Clock compared with the newest block of any endpoint unknown" in text


async def test_no_page_contains_a_key_a_token_or_the_path_of_an_rpc_address(
    settings, provider, chain, gas_key
):
    marked = attrs.evolve(settings, rpc_urls=(f"{chain.rpc_url}/{SECRET}",))
    async with running(marked, provider) as gateway:
        await log_in(gateway)
        for path in (
            "",
            "/refunds",
            "/tasks",
            "/payments",
            "/system",
            "/system/actions",
            "/settings?all=1",
        ):
            page = await (await gateway.client.get(f"/admin{path}")).get_data(as_text=True)
            assert SECRET not in page, path
            assert gas_key.key.hex() not in page, path
            assert "correct horse" not in page, path


async def test_a_copy_and_a_drill_begin_from_the_page_once(settings, provider, tmp_path):
    kept = settings.changed(backup_url=f"file://{tmp_path / 'copies'}")
    (tmp_path / "copies").mkdir()
    async with running(kept, provider) as gateway:
        await log_in(gateway)
        backups = gateway.services.find(Backups)
        await _first_copy(gateway)
        assert "Back up now" in await text_of(await gateway.client.get(PAGE))
        answer = await post(gateway, f"{PAGE}/backup", request="one")
        assert answer.status_code == 303
        await post(gateway, f"{PAGE}/backup", request="one")
        await _until_idle(backups)
        assert len(await actions_of(gateway, "backup.now")) == 1
        assert (await post(gateway, f"{PAGE}/drill", request="two")).status_code == 303
        await _until_idle(backups)
        assert len(await actions_of(gateway, "drill.now")) == 1


async def _first_copy(gateway) -> None:
    """Wait for the first copy and the first drill, which are made after warm-up."""
    async with asyncio.timeout(PATIENCE_S):
        while not await gateway.services.find(Backups)._newest("drill"):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.05)
    await _until_idle(gateway.services.find(Backups))


async def _until_idle(backups) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while backups.running is not None:  # noqa: ASYNC110 - nothing tells when it ends
            await asyncio.sleep(0.05)


async def test_without_a_place_for_copies_the_page_says_so(gateway):
    assert "GATEWAY_BACKUP_URL is not set" in await text_of(await gateway.client.get(PAGE))
    assert (await post(gateway, f"{PAGE}/backup", request="x")).status_code == 409


async def test_the_audit_log_goes_on_page_by_page_and_finds_an_action(gateway):
    for number in range(60):
        await note(gateway, reason=f"reason {number}")
    first = await text_of(await gateway.client.get(f"{PAGE}/actions?action=test.done"))
    assert "reason 59" in first
    assert "reason 9 " not in first
    page = await read_audit(gateway.services.find(Operator).desk, action="test.done")
    older = await text_of(
        await gateway.client.get(f"{PAGE}/actions?action=test.done&before={page.next_before}")
    )
    assert "reason 9 " in older
    assert "No matching actions." in await text_of(
        await gateway.client.get(f"{PAGE}/actions?subject=nothing")
    )


async def test_the_audit_log_as_csv_holds_no_formula_and_is_an_action(gateway):
    await note(gateway, reason='=HYPERLINK("http://evil.example")', after={"a": [1, "ü"]})
    await note(gateway, reason="two\nlines, and a comma")
    answer = await post(gateway, f"{PAGE}/actions.csv", request="once")
    assert answer.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(await answer.get_data(as_text=True))))
    reasons = [row["reason"] for row in rows if row["action"] == "test.done"]
    assert reasons == ["two\nlines, and a comma", '\'=HYPERLINK("http://evil.example")']
    assert len(await actions_of(gateway, "audit.export")) == 1


@pytest.mark.parametrize("path", ["backup", "drill", "actions.csv"])
async def test_nothing_is_done_without_a_session_or_from_a_foreign_page(gateway, path):
    stranger = gateway.app.test_client()
    answer = await stranger.post(f"{PAGE}/{path}", form={"request": "x"}, headers=SAME)
    assert answer.status_code == 401
    answer = await gateway.client.post(
        f"{PAGE}/{path}", form={"request": "x"}, headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 403
    assert (await stranger.get(PAGE)).status_code == 401
    assert (await stranger.get(f"{PAGE}/actions")).status_code == 401
