"""`gateway tasks`: a task's state at its provider, and what the operator must check there."""

import asyncio
import json

import attrs
import pytest
from click.testing import CliRunner

from gateway import Handle
from gateway.cli import main
from gateway.contracts import Cost
from gateway.store import SqliteStore
from gateway_testing.facts import ENDPOINT, NOW, RESULT, WALLET, leased, queued
from tests.migrated_databases import put_database

SENT = "2027-01-15 08:00:05"  # NOW and 5 seconds


@pytest.fixture
def command(tmp_path, monkeypatch):
    """`gateway tasks …` over a database with one task for each kind of event."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GATEWAY_WALLET", WALLET)
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0x" + "1" * 64)
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    asyncio.run(_history(tmp_path))

    def run(*arguments: str):
        result = CliRunner().invoke(main, ["tasks", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


async def _history(folder) -> None:
    async with SqliteStore(put_database(folder / "gateway.db")) as store:
        queue = store.queue
        lost = await leased(store, tx=1, id="lost-job")
        await queue.begin_submit(lost, now=NOW + 5)
        await queue.save_handle(lost, Handle(id="remote-17", urls={"poll": "https://x/?sig=s"}))
        await queue.fail(lost, details="uncertain_submit", error="Lost.", now=NOW)
        unknown = await leased(store, tx=2, id="never-answered")
        await queue.begin_submit(unknown, now=NOW + 5)
        await queue.fail(unknown, details="uncertain_submit", error="No answer.", now=NOW)
        refused = await leased(store, tx=3, id="refused")
        await queue.fail(
            refused,
            details="content_policy",
            error="No.",
            now=NOW,
            reason="400 blocked: a boat",
            provider="acme",
        )
        done = await leased(store, tx=4, id="done")
        await queue.complete(
            done, RESULT, expires_at=NOW + 9, now=NOW, cost=Cost(micros=12_500, source="told")
        )
        spare = attrs.evolve(ENDPOINT, slug="spare")
        at_work = await leased(store, tx=5, id="at-work", maker=spare)
        await queue.extend(at_work, lease_s=60, now=NOW, progress=0.5, note="3rd in line")
        await queued(store, tx=6, id="waiting")


def rows(said: str) -> dict[str, dict]:
    return {row["task"]: row for row in json.loads(said)}


def test_every_task_is_listed_the_newest_first(command):
    found = rows(command("--json"))
    assert list(found) == ["waiting", "at-work", "done", "refused", "never-answered", "lost-job"]
    assert [found["waiting"][name] for name in ("cost", "sent", "job", "note")] == [""] * 4


def test_a_task_tells_its_note_its_job_when_it_was_sent_and_its_cost(command):
    found = rows(command("--json"))
    assert found["at-work"]["note"] == "3rd in line"
    assert found["done"]["cost"] == "0.0125"
    assert (found["lost-job"]["job"], found["lost-job"]["sent"]) == ("remote-17", SENT)
    assert (found["never-answered"]["job"], found["never-answered"]["sent"]) == ("", SENT)


def test_the_uncertain_ones_are_listed_for_the_operator_to_look_up(command):
    found = rows(command("--uncertain", "--json"))
    assert list(found) == ["never-answered", "lost-job"]
    assert {row["payment"] for row in found.values()} == {"refund_due"}
    assert list(rows(command("--uncertain", "--json", "--limit", "1"))) == ["never-answered"]
    assert command("--uncertain", "--status", "completed") == "No matching tasks.\n"


def test_a_state_is_listed_alone(command):
    assert list(rows(command("--status", "failed", "--json"))) == [
        "refused",
        "never-answered",
        "lost-job",
    ]


def test_the_table_shows_what_to_look_up_and_no_address_of_a_job(command):
    result = command("--uncertain")
    assert "remote-17" in result
    assert f"sent {SENT}" in result
    assert "uncertain_submit" in result
    assert "sig=s" not in result + command("--json")


def test_tasks_list_is_tasks(command):
    assert command("list", "--json") == command("--json")


def test_why_a_task_failed_is_said_in_the_vendors_words(command):
    refused = rows(command("--json"))["refused"]
    assert (refused["provider"], refused["reason"]) == ("acme", "400 blocked: a boat")
    assert rows(command("--json"))["done"]["cost source"] == "told"
    assert "400 blocked" in command()


def test_one_task_is_shown_with_its_attempts(command):
    shown = command("show", "refused")
    for words in ("refused  picture  refund owed", "Attempt 1 begun", "400 blocked: a boat"):
        assert words in shown
    facts = json.loads(command("show", "refused", "--json"))
    (attempt,) = facts["attempts"]
    assert (attempt["number"], attempt["outcome"]) == (1, "failed")
    assert (attempt["begun_at"], attempt["message"]) == (NOW, "400 blocked: a boat")
    assert [one["title"] for one in facts["timeline"]][-1].startswith("Refund of")


def test_the_attempts_of_a_fallback_are_shown_with_its_name(command):
    assert "at-work  picture" in (shown := command("show", "at-work"))
    assert "made by spare, its fallback" in shown
    facts = json.loads(command("show", "at-work", "--json"))
    assert (facts["endpoint"], facts["made_by"], len(facts["attempts"])) == ("picture", "spare", 1)
    assert json.loads(command("show", "refused", "--json"))["made_by"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show",), 2, "names one task"),
        (("list", "refused"), 2, "names one task"),
        (("show", "none"), 1, "no such task"),
    ],
)
def test_a_task_that_is_not_there_is_one_sentence(command, words, code, said):
    result = CliRunner().invoke(main, ["tasks", *words])
    assert result.exit_code == code
    assert said in result.output
