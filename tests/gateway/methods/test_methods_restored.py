"""Payments by a method in the operator's commands: listed, copied, restored, asked again."""

import asyncio
import json

import attrs
import pytest
from click.testing import CliRunner

from gateway import ContentPolicy
from gateway.cli import main
from tests.conftest import running
from tests.gateway.methods.tickets import TicketPlugin, Tickets, bought
from tests.gateway.refunds.conftest import environment
from tests.patience import until


@pytest.fixture
def run(settings):
    def command(*words) -> str:
        result = CliRunner().invoke(main, list(words), env=environment(settings))
        assert result.exit_code == 0, result.output
        return result.stdout

    return command


def test_a_restored_database_asks_the_method_for_the_same_tasks(
    run, settings, provider, clock, tmp_path
):
    tickets = Tickets()

    async def sell() -> tuple[str, str]:
        async with running(settings, provider, [TicketPlugin(tickets)], now=clock) as gateway:
            provider.script = [ContentPolicy("No boats.")]
            failed = await bought(gateway, "failed:50000")
            await gateway.wait(failed)
            tickets.raises_after = [ConnectionError() for _ in range(99)]
            gateway.services.payments.outcome_s = 0.05
            gateway.services.timing = attrs.evolve(gateway.services.timing, drain_payments_s=0.05)
            opened = await bought(gateway, "open:30000")
            await until(lambda: "ticket:open" in [one.claim for one in tickets.asked])
            return opened, failed

    async def go_on() -> dict:
        async with running(settings, provider, [TicketPlugin(tickets)], now=clock) as gateway:
            return await gateway.wait(opened)

    opened, failed = asyncio.run(sell())
    copy = str(tmp_path / "copy.db")
    run("backup", copy)
    run("restore", copy)
    (held,) = json.loads(run("tasks", "--status", "held", "--json"))
    assert (held["task"], held["flow"], held["payment"]) == (opened, "ticket", "settling")
    (owed,) = json.loads(run("refunds", "list", "--json"))
    assert (owed["task"], owed["to"], owed["amount"]) == (failed, "", "0.05")
    assert "came by ticket, and its proof names no address" in owed["problem"]
    run("migrate", "--check")

    tickets.raises_after = []
    assert asyncio.run(go_on())["status"] == "completed"
    assert {one.task_id for one in tickets.asked if one.claim == "ticket:open"} == {opened}
    assert tickets.ledger == {"ticket:open": opened, "ticket:failed": failed}
